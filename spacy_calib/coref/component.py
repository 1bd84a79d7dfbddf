"""The component `calib_coref`: which mentions name the same, by antecedents (Nguyen & O'Connor 2015, section 5)."""

# No `from __future__ import annotations` here: spaCy reads the types of `initialize`, and cannot resolve strings.
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples

from ..errors import calib_error
from ..metrics.calibration_error import calibration_error
from ..pairs.build import check_threshold
from ..pipe.annotating import AnnotatingPipe
from ..pipe.saved import load_part
from ..schema import digests, floats, lengths, maybe, number, record
from ..sequence.features import FeatureIndex
from ..types import Floats, Ints
from .factory import CorefSettings, register_coref
from .features import MentionWords, candidates_of, option_rows
from .inference.antecedents import Antecedents, Candidates, first_mentions
from .inference.calibration import CALIBRATION, JudgedMentions, PairCalibration
from .inference.figures import FIGURES, NOTHING, Cluster
from .inference.learning import PENALTIES, Choices, learn, right_options
from .inference.pairs import nearest_sample, pair_chances
from .mentions import Mentions, aligned_gold, clusters_in, gold_speakers, mentions_of, speakers_of, write_clusters
from .view import DocCoref, Resolved, clusters_of, coref_view, write_resolved

GoldMentions = dict[tuple[int, int], int]


def score_coref(examples: Iterable[Example], gold_of: Callable[[Example], GoldMentions]) -> dict[str, float | None]:
    """F of MUC, B3, CEAF-e and LEA over clusters of two or more mentions (right where their tokens are), and SMCE of
    the pairs that reach the threshold, raw and calibrated.

    gold_of (Callable): Gold mentions in tokens of the predicted Doc -> clusters. RETURNS (dict): All None without gold.
    """
    totals = dict.fromkeys(FIGURES, NOTHING)
    raw, calibrated, hits = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, dtype=bool)]
    for example in examples:
        view, gold = coref_view(example.predicted), gold_of(example)
        if view is None or not gold:
            continue
        wanted = clusters_of_several(gold)
        for name, figure in FIGURES.items():
            totals[name] += figure(found_clusters(view), wanted)
        clusters = clusters_in(view.found, gold)
        raw.append(view.pairs.chances)
        calibrated.append(view.pairs.chances if view.calibrated is None else view.calibrated)
        hits.append(clusters[view.pairs.later] == clusters[view.pairs.earlier])
    scored: dict[str, float | None] = {
        f"coref_{name}": shares.f if shares.recall[1] else None for name, shares in totals.items()
    }
    for name, scores in (("coref_smce", calibrated), ("coref_smce_raw", raw)):
        whole = np.concatenate(scores)
        scored[name] = calibration_error(whole, np.concatenate(hits)) if len(whole) else None
    return scored


def clusters_of_several(gold: GoldMentions) -> list[Cluster]:
    """The gold clusters of two or more mentions, a mention being (first token, the one after the last)."""
    held: dict[int, set[tuple[int, int]]] = {}
    for bounds, cluster in gold.items():
        held.setdefault(cluster, set()).add(bounds)
    return [frozenset(one) for one in held.values() if len(one) > 1]


def found_clusters(view: DocCoref) -> list[Cluster]:
    """The clusters on a Doc in the form of `clusters_of_several`."""
    return [frozenset((span.start, span.end) for span in cluster) for cluster in view.clusters]


# The nearest of so many drawn clusterings is taken; their seed.
_SAMPLES, _SEED = 100, 0
LEARN_ON = ("gold", "found")
CLUSTERS = ("best", "sample")

# The saved form of what was learned.
_STATE = record(
    {"hashes": digests, "weights": floats(), "penalty": number(0.0), "calibration": maybe(CALIBRATION)},
    lambda held: lengths({"weights": len(held["hashes"]) + 1}, held),
)


@dataclass(frozen=True, eq=False)
class _Learned:
    """index (FeatureIndex): The known features. weights (Floats): One each. penalty (float): Of their squares."""

    index: FeatureIndex
    weights: Floats
    penalty: float
    calibration: PairCalibration | None


@dataclass(frozen=True, eq=False)
class _Document:
    """A document to learn from. clusters (Ints): The gold cluster of each mention."""

    words: MentionWords
    candidates: Candidates
    clusters: Ints


class CoreferenceResolver(AnnotatingPipe, CorefSettings):
    """P(a_j = k) is proportional to exp(weights · features of mention j and antecedent k), an earlier mention or NEW.

    settings: See CorefSettings, each an attribute of the resolver.
    RAISES C001: a setting out of range. C358: another package owns Doc._.coref.
    """

    def __init__(self, nlp: Language, name: str = "calib_coref", **settings: Any):
        CorefSettings.__init__(self, **settings)
        for setting, known in (("learn_on", LEARN_ON), ("clusters", CLUSTERS)):
            if getattr(self, setting) not in known:
                wanted = f"one of {', '.join(known)}"
                raise calib_error("C001", name=setting, wanted=wanted, given=repr(getattr(self, setting)))
        for setting in ("window", "least"):
            if getattr(self, setting) < 1:
                raise calib_error("C001", name=setting, wanted="1 or more", given=getattr(self, setting))
        if self.penalty is not None and not self.penalty > 0:
            raise calib_error("C001", name="penalty", wanted="greater than 0", given=self.penalty)
        self.threshold = check_threshold(self.threshold)
        register_coref(name)
        self.vocab, self.name = nlp.vocab, name
        self._learned: _Learned | None = None
        # The documents of the last `initialize`, each by weights that did not see it; not saved.
        self.held_out: list[JudgedMentions] = []

    @property
    def learned(self) -> _Learned:
        """What `initialize` learned. RAISES C357: nothing yet."""
        if self._learned is None:
            raise calib_error("C357", name=self.name)
        return self._learned

    # Learning

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Learn the weights, and the calibration of pairs from documents held out by cross-validation.

        The components in front of this one annotate the predicted Docs first, so train them before.
        RAISES C356: no gold clusters. C359: a mention stands in two clusters. C361: too few pairs to calibrate.
        """
        validate_get_examples(get_examples, "CoreferenceResolver.initialize")
        documents = [self._document(example, nlp) for example in get_examples()]
        if not any(len(np.unique(one.clusters)) < len(one.clusters) for one in documents):
            raise calib_error("C356")
        distinct = [np.unique(np.concatenate([part.reshape(-1) for part in self._hashes(one)])) for one in documents]
        index = FeatureIndex.of(distinct, min(self.least, len(documents)))
        choices = [self._choices(index, one) for one in documents]
        found = learn(choices, PENALTIES if self.penalty is None else [self.penalty], least=self.least)
        self.held_out = [self._judged(one, held) for one, held in zip(documents, found.held_out, strict=False)]
        calibration = None
        if self.recalibrator is not None:
            calibration = PairCalibration.fit(self.held_out, self.recalibrator, self.name, self.context)
        self._learned = _Learned(index, found.weights, found.penalty, calibration)

    def _document(self, example: Example, nlp: Language | None) -> _Document:
        copied = example.predicted.copy()
        gold_speakers(example, self.speakers, copied)
        doc = self._annotated(copied, nlp)
        gold = self.gold_of(example)
        mentions = Mentions.on(doc, gold) if self.learn_on == "gold" else mentions_of(doc, self.mentions)
        words = MentionWords.of(doc, mentions, speakers_of(doc, self.speakers))
        return _Document(words, self._candidates(words), clusters_in(mentions, gold))

    def _annotated(self, doc: Doc, nlp: Language | None) -> Doc:
        """A Doc as annotated by the components in front of this one."""
        for name, pipe in [] if nlp is None else nlp.pipeline:
            if name == self.name:
                break
            doc = pipe(doc)
        return doc

    def gold_of(self, example: Example) -> dict[tuple[int, int], int]:
        """Gold mentions in tokens of the predicted Doc -> their clusters. RAISES C359: a mention is in two clusters."""
        return aligned_gold(example, self.prefix, self.mentions)

    def _candidates(self, words: MentionWords) -> Candidates:
        return candidates_of(words.mentions, words.columns["head"], self.window)

    @staticmethod
    def _hashes(document: _Document) -> tuple[Any, Any]:
        return document.words.new_hashes(), document.words.link_hashes(document.candidates)

    def _choices(self, index: FeatureIndex, one: _Document) -> Choices:
        features = option_rows(index, *self._hashes(one), one.candidates)
        return Choices(features, one.candidates, right_options(one.candidates, one.clusters))

    def _judged(self, document: _Document, held: Antecedents) -> JudgedMentions:
        return JudgedMentions(document.words.mentions.places, pair_chances(held, self.threshold), document.clusters)

    def calibrate(self, examples: Iterable[Example]) -> None:
        """Learn the calibration of pairs anew, from other gold than the weights, which stay.

        examples: Predicted Docs that passed this component. RAISES C361: no recalibrator, or too few pairs.
        """
        learned, judged = self.learned, []
        if self.recalibrator is None:
            raise calib_error("C361", name=self.name, why="its setting recalibrator is null")
        for example in examples:
            view = coref_view(example.predicted)
            if view is not None:
                clusters = clusters_in(view.found, self.gold_of(example))
                judged.append(JudgedMentions(view.found.places, view.pairs, clusters))
        self._learned = replace(learned, calibration=PairCalibration.fit(judged, self.recalibrator, self.name, self.context))

    # Prediction

    def antecedents(self, doc: Doc, mentions: Mentions) -> Antecedents:
        """P(a_j) of these mentions. RAISES C357: nothing was learned yet."""
        learned = self.learned
        words = MentionWords.of(doc, mentions, speakers_of(doc, self.speakers))
        candidates = self._candidates(words)
        rows = option_rows(learned.index, words.new_hashes(), words.link_hashes(candidates), candidates)
        return Antecedents.from_scores(rows @ learned.weights, candidates)

    def predict(self, docs: Sequence[Doc]) -> list[Resolved]:
        """RAISES C357: nothing was learned yet. C359: `doc.spans` holds a mention twice."""
        return [self._resolve(doc) for doc in docs]

    def _resolve(self, doc: Doc) -> Resolved:
        calibration = self.learned.calibration
        mentions = mentions_of(doc, self.mentions)
        antecedents = self.antecedents(doc, mentions)
        pairs = pair_chances(antecedents, self.threshold)
        if self.clusters == "best" or not len(mentions):
            first = first_mentions(antecedents.best())
        else:
            first = nearest_sample(antecedents.sample(_SAMPLES, _SEED), pairs)
        calibrated = None if calibration is None else calibration.predict(pairs, mentions.places)
        rest = np.zeros(0) if calibration is None else calibration.rest
        return Resolved(mentions, antecedents, pairs, calibrated, rest, first)

    def set_annotations(self, docs: Sequence[Doc], found: Sequence[Resolved]) -> None:
        """Write the clusters into `doc.spans`, and what `Doc._.coref` shows."""
        for doc, one in zip(docs, found, strict=True):
            spans = [doc[a:b] for a, b in zip(one.mentions.starts.tolist(), one.mentions.ends.tolist(), strict=True)]
            write_clusters(doc, self.prefix, clusters_of(spans, one.first))
            write_resolved(doc, one)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """The figures of `score_coref`. RAISES C359: a gold mention stands in two clusters."""
        return score_coref(examples, self.gold_of)

    # Saving

    def _state(self) -> dict[str, Any]:
        held = self._learned
        if held is None:
            return {}
        calibration = None if held.calibration is None else held.calibration.state()
        return {"hashes": held.index.hashes, "weights": held.weights, "penalty": held.penalty, "calibration": calibration}

    def _made(self, state: Any) -> _Learned | None:
        """None if nothing was learned."""
        if state == {}:
            return None
        held = _STATE(state, "state")
        load = partial(load_part, name=self.name)
        calibration = None if held["calibration"] is None else PairCalibration.from_state(held["calibration"], load)
        return _Learned(FeatureIndex(held["hashes"]), held["weights"], held["penalty"], calibration)

    def _take(self, made: _Learned | None) -> None:
        self._learned = made
