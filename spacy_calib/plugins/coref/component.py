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
from .inference.calibration import CALIBRATION, LabelledPairs, PairCalibration
from .inference.figures import FIGURES, NOTHING, Cluster
from .inference.learning import PENALTIES, Choices, learn, right_options
from .inference.pairs import nearest_sample, pair_probabilities
from .mentions import Mentions, aligned_gold, clusters_in, copy_speakers, mentions_of, speakers_of, write_clusters
from .messages import calib_error
from .view import CorefResult, DocCoref, clusters_of, coref_view, write_result

GoldMentions = dict[tuple[int, int], int]


def score_coref(examples: Iterable[Example], gold_of: Callable[[Example], GoldMentions]) -> dict[str, float | None]:
    """Return F of MUC, B3, CEAF-e and LEA over clusters of two or more mentions, and SMCE of the pairs, raw and calibrated.

    gold_of (Callable): Example -> {(start, end) of gold mention: cluster}. RETURNS (dict): "coref_muc" ...; None without gold.
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
        clusters = clusters_in(view.mention_arrays, gold)
        raw.append(view.pairs.probabilities)
        calibrated.append(view.pairs.probabilities if view.calibrated is None else view.calibrated)
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
    """Return the predicted clusters of two or more mentions (first token, the one after the last)."""
    return [frozenset((span.start, span.end) for span in cluster) for cluster in view.clusters]


# With clusters = "sample": how many clusterings are sampled to choose from, and their seed.
_SAMPLES, _SEED = 100, 0
LEARN_ON = ("gold", "found")
CLUSTERS = ("best", "sample")

# The saved form of what was learned.
_STATE = record(
    {"hashes": digests, "weights": floats(), "penalty": number(0.0), "calibration": maybe(CALIBRATION)},
    lambda fields: lengths({"weights": len(fields["hashes"]) + 1}, fields),
)


@dataclass(frozen=True, eq=False)
class _LinkModel:
    """The fitted weights. index (FeatureIndex): Known features. weights (Floats): One for each. penalty (float): L2 penalty."""

    index: FeatureIndex
    weights: Floats
    penalty: float
    calibration: PairCalibration | None


@dataclass(frozen=True, eq=False)
class _Document:
    """A document to learn from. words: Its mentions. candidates: Possible antecedents. clusters (Ints): Gold cluster of each mention."""

    words: MentionWords
    candidates: Candidates
    clusters: Ints


class CoreferenceResolver(AnnotatingPipe, CorefSettings):
    """Clusters the mentions of a Doc by the probability of each possible antecedent.

    P(a_j = k) is proportional to exp(weights · features of mention j and antecedent k), an earlier mention or NEW.
    settings: Fields of CorefSettings. RAISES C001: a setting out of range. C358: another package owns Doc._.coref.
    """

    def __init__(self, nlp: Language, name: str = "calib_coref", **settings: Any):
        CorefSettings.__init__(self, **settings)
        for setting, choices in (("learn_on", LEARN_ON), ("clusters", CLUSTERS)):
            if getattr(self, setting) not in choices:
                value = repr(getattr(self, setting))
                raise calib_error("C001", name=setting, wanted=f"one of {', '.join(choices)}", given=value)
        for setting in ("window", "least"):
            if getattr(self, setting) < 1:
                raise calib_error("C001", name=setting, wanted="1 or more", given=getattr(self, setting))
        if self.penalty is not None and not self.penalty > 0:
            raise calib_error("C001", name="penalty", wanted="greater than 0", given=self.penalty)
        self.threshold = check_threshold(self.threshold)
        register_coref(name)
        self.vocab, self.name = nlp.vocab, name
        self._link_model: _LinkModel | None = None
        # The pairs of each document of the last `initialize`, by weights of the other folds; not saved.
        self.held_out: list[LabelledPairs] = []

    @property
    def link_model(self) -> _LinkModel:
        """The weights and the calibration that `initialize` fitted. RAISES C357: it has not run yet."""
        if self._link_model is None:
            raise calib_error("C357", name=self.name)
        return self._link_model

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
        index = FeatureIndex.from_hashes(distinct, min(self.least, len(documents)))
        choices = [self._choices(index, document) for document in documents]
        result = learn(choices, PENALTIES if self.penalty is None else [self.penalty], minimum=self.least)
        self.held_out = [
            self._label_pairs(document, antecedents) for document, antecedents in zip(documents, result.held_out, strict=False)
        ]
        calibration = None
        if self.recalibrator is not None:
            calibration = PairCalibration.fit(self.held_out, self.recalibrator, self.name, self.context)
        self._link_model = _LinkModel(index, result.weights, result.penalty, calibration)

    def _document(self, example: Example, nlp: Language | None) -> _Document:
        """Return mentions, candidate antecedents and gold clusters of one Example."""
        copy = example.predicted.copy()
        copy_speakers(example, self.speakers, copy)
        doc = self._annotate(copy, nlp)
        gold = self.gold_of(example)
        mentions = Mentions.on(doc, gold) if self.learn_on == "gold" else mentions_of(doc, self.mentions)
        words = MentionWords.from_doc(doc, mentions, speakers_of(doc, self.speakers))
        return _Document(words, self._candidates(words), clusters_in(mentions, gold))

    def _annotate(self, doc: Doc, nlp: Language | None) -> Doc:
        """Annotate a Doc with the components before this one."""
        for name, pipe in [] if nlp is None else nlp.pipeline:
            if name == self.name:
                break
            doc = pipe(doc)
        return doc

    def gold_of(self, example: Example) -> dict[tuple[int, int], int]:
        """Return (start, end) of each gold mention, in tokens of the predicted Doc -> number of its cluster. RAISES C359: two clusters."""
        return aligned_gold(example, self.prefix, self.mentions)

    def _candidates(self, words: MentionWords) -> Candidates:
        return candidates_of(words.mentions, words.columns["head"], self.window)

    @staticmethod
    def _hashes(document: _Document) -> tuple[Any, Any]:
        return document.words.new_hashes(), document.words.link_hashes(document.candidates)

    def _choices(self, index: FeatureIndex, document: _Document) -> Choices:
        features = option_rows(index, *self._hashes(document), document.candidates)
        return Choices(features, document.candidates, right_options(document.candidates, document.clusters))

    def _label_pairs(self, document: _Document, antecedents: Antecedents) -> LabelledPairs:
        pairs = pair_probabilities(antecedents, self.threshold)
        return LabelledPairs(document.words.mentions.grouping, pairs, document.clusters)

    def calibrate(self, examples: Iterable[Example]) -> None:
        """Fit the calibration of pairs to Docs that passed this component. RAISES C361: no recalibrator, or too few pairs."""
        link_model, documents = self.link_model, []
        if self.recalibrator is None:
            raise calib_error("C361", name=self.name, why="its setting recalibrator is null")
        for example in examples:
            if (view := coref_view(example.predicted)) is not None:
                clusters = clusters_in(view.mention_arrays, self.gold_of(example))
                documents.append(LabelledPairs(view.mention_arrays.grouping, view.pairs, clusters))
        calibration = PairCalibration.fit(documents, self.recalibrator, self.name, self.context)
        self._link_model = replace(link_model, calibration=calibration)

    # Prediction

    def antecedents(self, doc: Doc, mentions: Mentions) -> Antecedents:
        """Return the probabilities of the antecedents of these mentions. RAISES C357: the component is not initialized."""
        link_model = self.link_model
        words = MentionWords.from_doc(doc, mentions, speakers_of(doc, self.speakers))
        candidates = self._candidates(words)
        rows = option_rows(link_model.index, words.new_hashes(), words.link_hashes(candidates), candidates)
        return Antecedents.from_scores(rows @ link_model.weights, candidates)

    def predict(self, docs: Sequence[Doc]) -> list[CorefResult]:
        """Resolve Docs without changing them. RAISES C357: it is not initialized. C359: `doc.spans` has a mention twice."""
        return [self._resolve(doc) for doc in docs]

    def _resolve(self, doc: Doc) -> CorefResult:
        """Score antecedents and choose clusters: the most probable antecedents, or the sample nearest to all pairs."""
        calibration = self.link_model.calibration
        mentions = mentions_of(doc, self.mentions)
        antecedents = self.antecedents(doc, mentions)
        pairs = pair_probabilities(antecedents, self.threshold)
        if self.clusters == "best" or not len(mentions):
            first = first_mentions(antecedents.best())
        else:
            first = nearest_sample(antecedents.sample(_SAMPLES, _SEED), pairs)
        calibrated = None if calibration is None else calibration.predict(pairs, mentions.grouping)
        below_threshold = np.zeros(0) if calibration is None else calibration.below_threshold
        return CorefResult(mentions, antecedents, pairs, calibrated, below_threshold, first)

    def set_annotations(self, docs: Sequence[Doc], results: Sequence[CorefResult]) -> None:
        """Write the clusters into `doc.spans`, and the result for `Doc._.coref`."""
        for doc, result in zip(docs, results, strict=True):
            spans = [doc[a:b] for a, b in zip(result.mentions.starts.tolist(), result.mentions.ends.tolist(), strict=True)]
            write_clusters(doc, self.prefix, clusters_of(spans, result.first))
            write_result(doc, result)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Return F of the clusters and SMCE of the pairs. RAISES C359: a gold mention is in two clusters."""
        return score_coref(examples, self.gold_of)

    # Saving

    def _state(self) -> dict[str, Any]:
        model = self._link_model
        if model is None:
            return {}
        calibration = None if model.calibration is None else model.calibration.state()
        return {"hashes": model.index.hashes, "weights": model.weights, "penalty": model.penalty, "calibration": calibration}

    def _read_state(self, state: Any) -> _LinkModel | None:
        if state == {}:
            return None
        fields = _STATE(state, "state")
        load = partial(load_part, name=self.name)
        calibration = None if fields["calibration"] is None else PairCalibration.from_state(fields["calibration"], load)
        return _LinkModel(FeatureIndex(fields["hashes"]), fields["weights"], fields["penalty"], calibration)

    def _set_state(self, state: _LinkModel | None) -> None:
        self._link_model = state
