"""The component `calib_coref`: clusters mentions by their antecedents (Nguyen & O'Connor 2015, section 5)."""

# No `from __future__ import annotations` here: spaCy reads the types of `initialize`, and cannot resolve strings.
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples

from ...metrics.calibration_errors import calibration_error
from ...pairs.build import check_threshold
from ...pipe.annotating import AnnotatingPipe
from ...pipe.saved import load_part
from ...schema import digests, floats, lengths, maybe, number, record
from ...types import Floats, Ints
from ..sequence.features import FeatureIndex
from .factory import CorefSettings, register_coref
from .features import MentionWords, candidates_of, option_rows
from .inference.antecedents import Antecedents, Candidates, first_mentions
from .inference.calibration import CALIBRATION, JudgedMentions, PairCalibration
from .inference.figures import FIGURES, NOTHING, Cluster
from .inference.learning import PENALTIES, Choices, learn, right_options
from .inference.pairs import nearest_sample, pair_chances
from .mentions import Mentions, aligned_gold, clusters_in, gold_speakers, mentions_of, speakers_of, write_clusters
from .messages import calib_error
from .view import DocCoref, Resolved, clusters_of, coref_view, write_resolved

GoldMentions = dict[tuple[int, int], int]


def score_coref(examples: Iterable[Example], gold_of: Callable[[Example], GoldMentions]) -> dict[str, float | None]:
    """Return F of MUC, B3, CEAF-e and LEA over clusters of two or more mentions, and SMCE of the pairs, raw and calibrated.

    gold_of (Callable): Gold mentions in tokens of the predicted Doc -> clusters. RETURNS (dict): All None without gold.
    """
    totals = dict.fromkeys(FIGURES, NOTHING)
    raw, calibrated, hits = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, dtype=bool)]
    for example in examples:
        view, gold = coref_view(example.predicted), gold_of(example)
        if view is None or not gold:
            continue
        gold_clusters = clusters_of_several(gold)
        for name, figure in FIGURES.items():
            totals[name] += figure(found_clusters(view), gold_clusters)
        clusters = clusters_in(view.found, gold)
        raw.append(view.pairs.chances)
        calibrated.append(view.pairs.chances if view.calibrated is None else view.calibrated)
        hits.append(clusters[view.pairs.later] == clusters[view.pairs.earlier])
    scores_by_name: dict[str, float | None] = {
        f"coref_{name}": shares.f if shares.recall[1] else None for name, shares in totals.items()
    }
    for name, scores in (("coref_smce", calibrated), ("coref_smce_raw", raw)):
        whole = np.concatenate(scores)
        scores_by_name[name] = calibration_error(whole, np.concatenate(hits)) if len(whole) else None
    return scores_by_name


def clusters_of_several(gold: GoldMentions) -> list[Cluster]:
    """Return the gold clusters of two or more mentions (first token, the one after the last)."""
    by_number: dict[int, set[tuple[int, int]]] = {}
    for bounds, cluster in gold.items():
        by_number.setdefault(cluster, set()).add(bounds)
    return [frozenset(mentions) for mentions in by_number.values() if len(mentions) > 1]


def found_clusters(view: DocCoref) -> list[Cluster]:
    """Return the clusters on a Doc in the form of `clusters_of_several`."""
    return [frozenset((span.start, span.end) for span in cluster) for cluster in view.clusters]


# The nearest of so many drawn clusterings is taken; their seed.
_SAMPLES, _SEED = 100, 0
LEARN_ON = ("gold", "found")
CLUSTERS = ("best", "sample")

# The saved form of what was learned.
_STATE = record(
    {"hashes": digests, "weights": floats(), "penalty": number(0.0), "calibration": maybe(CALIBRATION)},
    lambda fields: lengths({"weights": len(fields["hashes"]) + 1}, fields),
)


@dataclass(frozen=True, eq=False)
class _Learned:
    """The learned state. index (FeatureIndex): Known features. weights (Floats): Of these. penalty (float): Of their squares."""

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

    settings: See CorefSettings. RAISES C001: a setting out of range. C358: another package owns Doc._.coref.
    """

    def __init__(self, nlp: Language, name: str = "calib_coref", **settings: Any):
        CorefSettings.__init__(self, **settings)
        for setting, choices in (("learn_on", LEARN_ON), ("clusters", CLUSTERS)):
            if getattr(self, setting) not in choices:
                expected = f"one of {', '.join(choices)}"
                raise calib_error("C001", name=setting, wanted=expected, given=repr(getattr(self, setting)))
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
        """The result of `initialize`. RAISES C357: nothing was learned yet."""
        if self._learned is None:
            raise calib_error("C357", name=self.name)
        return self._learned

    # Learning

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Learn the weights, and the calibration of pairs from cross-validated documents.

        Earlier components annotate the predicted Docs, so train them before. RAISES C356: no gold clusters. C359: a mention is
        in two clusters. C361: too few pairs to calibrate.
        """
        validate_get_examples(get_examples, "CoreferenceResolver.initialize")
        documents = [self._document(example, nlp) for example in get_examples()]
        if not any(len(np.unique(document.clusters)) < len(document.clusters) for document in documents):
            raise calib_error("C356")
        distinct = [np.unique(np.concatenate([part.reshape(-1) for part in self._hashes(document)])) for document in documents]
        index = FeatureIndex.of(distinct, min(self.least, len(documents)))
        choices = [self._choices(index, document) for document in documents]
        result = learn(choices, PENALTIES if self.penalty is None else [self.penalty], minimum=self.least)
        self.held_out = [
            self._judge(document, antecedents) for document, antecedents in zip(documents, result.held_out, strict=False)
        ]
        calibration = None
        if self.recalibrator is not None:
            calibration = PairCalibration.fit(self.held_out, self.recalibrator, self.name, self.context)
        self._learned = _Learned(index, result.weights, result.penalty, calibration)

    def _document(self, example: Example, nlp: Language | None) -> _Document:
        copy = example.predicted.copy()
        gold_speakers(example, self.speakers, copy)
        doc = self._annotate(copy, nlp)
        gold = self.gold_of(example)
        mentions = Mentions.on(doc, gold) if self.learn_on == "gold" else mentions_of(doc, self.mentions)
        words = MentionWords.of(doc, mentions, speakers_of(doc, self.speakers))
        return _Document(words, self._candidates(words), clusters_in(mentions, gold))

    def _annotate(self, doc: Doc, nlp: Language | None) -> Doc:
        """Annotate a Doc with the components before this one."""
        for name, pipe in [] if nlp is None else nlp.pipeline:
            if name == self.name:
                break
            doc = pipe(doc)
        return doc

    def gold_of(self, example: Example) -> dict[tuple[int, int], int]:
        """Return gold mentions in tokens of the predicted Doc -> their clusters. RAISES C359: a mention is in two clusters."""
        return aligned_gold(example, self.prefix, self.mentions)

    def _candidates(self, words: MentionWords) -> Candidates:
        return candidates_of(words.mentions, words.columns["head"], self.window)

    @staticmethod
    def _hashes(document: _Document) -> tuple[Any, Any]:
        return document.words.new_hashes(), document.words.link_hashes(document.candidates)

    def _choices(self, index: FeatureIndex, document: _Document) -> Choices:
        features = option_rows(index, *self._hashes(document), document.candidates)
        return Choices(features, document.candidates, right_options(document.candidates, document.clusters))

    def _judge(self, document: _Document, antecedents: Antecedents) -> JudgedMentions:
        return JudgedMentions(document.words.mentions.places, pair_chances(antecedents, self.threshold), document.clusters)

    def calibrate(self, examples: Iterable[Example]) -> None:
        """Learn the calibration of pairs from other Docs that passed it. RAISES C361: no recalibrator, or too few pairs."""
        state, mentions = self.learned, []
        if self.recalibrator is None:
            raise calib_error("C361", name=self.name, why="its setting recalibrator is null")
        for example in examples:
            view = coref_view(example.predicted)
            if view is not None:
                clusters = clusters_in(view.found, self.gold_of(example))
                mentions.append(JudgedMentions(view.found.places, view.pairs, clusters))
        self._learned = replace(state, calibration=PairCalibration.fit(mentions, self.recalibrator, self.name, self.context))

    # Prediction

    def antecedents(self, doc: Doc, mentions: Mentions) -> Antecedents:
        """Return P(a_j) of these mentions. RAISES C357: nothing was learned yet."""
        state = self.learned
        words = MentionWords.of(doc, mentions, speakers_of(doc, self.speakers))
        candidates = self._candidates(words)
        rows = option_rows(state.index, words.new_hashes(), words.link_hashes(candidates), candidates)
        return Antecedents.from_scores(rows @ state.weights, candidates)

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

    def set_annotations(self, docs: Sequence[Doc], results: Sequence[Resolved]) -> None:
        """Write the clusters into `doc.spans`, and the result for `Doc._.coref`."""
        for doc, result in zip(docs, results, strict=True):
            spans = [doc[a:b] for a, b in zip(result.mentions.starts.tolist(), result.mentions.ends.tolist(), strict=True)]
            write_clusters(doc, self.prefix, clusters_of(spans, result.first))
            write_resolved(doc, result)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Return the figures of `score_coref`. RAISES C359: a gold mention is in two clusters."""
        return score_coref(examples, self.gold_of)

    # Saving

    def _state(self) -> dict[str, Any]:
        state = self._learned
        if state is None:
            return {}
        calibration = None if state.calibration is None else state.calibration.state()
        return {"hashes": state.index.hashes, "weights": state.weights, "penalty": state.penalty, "calibration": calibration}

    def _read_state(self, state: Any) -> _Learned | None:
        if state == {}:
            return None
        fields = _STATE(state, "state")
        load = partial(load_part, name=self.name)
        calibration = None if fields["calibration"] is None else PairCalibration.from_state(fields["calibration"], load)
        return _Learned(FeatureIndex(fields["hashes"]), fields["weights"], fields["penalty"], calibration)

    def _set_state(self, state: _Learned | None) -> None:
        self._learned = state
