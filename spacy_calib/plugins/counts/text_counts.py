"""Count what satisfies queries in annotated Docs, one Doc at a time: only the scores of matching units are kept."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ...annotations import get_annotation, plain_name
from ...doc.predicted_labels import LabelPredictions, PredictedLabelReader, join_labels
from ...doc.view import doc_view
from ...errors import brief
from ...gold.keys import ORIGIN, name_of, value_of
from ...gold.reading import document_of
from ...pairs.documents import DocumentNumbers
from ...pipe.component import Calibrator
from ...pipe.label_names import merged_labels, shown_columns
from ...pipe.record.drift import DIFFERENT, LIKE, OTHER_WEIGHTS, TOO_FEW, DriftSums, UnitScores
from ...pipe.record.effects import WIDTHS, Effects
from ...pipe.record.fit_record import FitRecord, read_record
from ...types import Floats, Ints
from ..expect.summary import summarize_drift
from .counting import CorpusCounts, CountInputs, UncertainUnits
from .messages import calib_error
from .periods import find_period
from .queries import DOCUMENT, ENTITY, TOKEN, LabelQuery, LabelScores, QueryResult

# Number of Doc views that are cached while a Doc is counted: at least its calib pipes, so that no view is read twice.
_N_VIEWS = 8
_PRIME = 2**61 - 1
# Factories whose pipes read words and what they listen to (a calib pipe also its component), and set only their own annotation.
_INDEPENDENT = frozenset(
    {
        "tok2vec", "tagger", "morphologizer", "senter", "parser", "ner", "spancat", "spancat_singlelabel", "textcat",
        "textcat_multilabel", "calib", "calib_ner",
    }
)  # fmt: skip
# Factories whose pipes read all earlier ones, and set nothing that a calib pipe scores. A ruler may change tags, not entities.
_READERS = frozenset({"lemmatizer"})
_RULER = "attribute_ruler"


def scores_to_count(pipes: Sequence[Calibrator]) -> list[LabelScores]:
    """Return the label scores of calib pipes; the score of an arc is not that of its label."""
    scores = [
        LabelScores(
            pipe.attr, pipe.fit_info.layer, pipe.lookup.labels(), names=shown_columns(pipe), merged_labels=merged_labels(pipe)
        )
        for pipe in pipes
    ]
    # The score of an arc is not that of its label.
    return [score for score in scores if not score.annotation.arcs]


def select_pipes(nlp: Language, pipes: Sequence[Calibrator]) -> list[str]:
    """Return the names of the pipes that have to run, in order: often not the parser, which is most of the work."""
    names = nlp.pipe_names
    only_entities = all(plain_name(pipe.fit_info.layer) in ("ner", "biluo") for pipe in pipes)
    skippable = _INDEPENDENT | _READERS | ({_RULER} if only_entities else set())
    names_to_run = {name for pipe in pipes for name in (pipe.name, pipe.source.component)}
    factories = {name: nlp.get_pipe_meta(name).factory for name in names}
    for index in reversed(range(len(names))):
        name = names[index]
        if name not in names_to_run and factories[name] in skippable:
            continue
        upstream = names[:index]
        if factories[name] in _INDEPENDENT:
            upstream = [pipe for pipe in upstream if name in getattr(nlp.get_pipe(pipe), "listening_components", ())]
        names_to_run.update((name, *upstream))
    return [name for name in names if name in names_to_run]


def find_effects(query: LabelQuery, pipes: Sequence[Calibrator]) -> Effects | None:
    """Return the effects of documents and sources for the labels of a query, the largest of several; None if no fit has any."""
    records = {pipe.attr: read_record(pipe) for pipe in pipes}
    effects = [
        record.effects[label]
        for attr, label in query.labels
        if (record := records[attr]) is not None and label in record.effects
    ]
    if len(effects) <= 1:
        return effects[0] if effects else None
    widest = max(
        effects, key=lambda effect: sum(np.square(WIDTHS[: len(effect.width_probabilities)]) * effect.width_probabilities)
    )
    return Effects(
        variance_between=max(effect.variance_between for effect in effects),
        shift_variance=max(effect.shift_variance for effect in effects),
        width_probabilities=widest.width_probabilities,
        n_sources=widest.n_sources,
    )


def find_verdict(query: LabelQuery, drift: Mapping[str, Any]) -> str:
    """Return the worst drift verdict of the pipes that a query reads. drift (Mapping): From `CorpusCounter.drift`."""
    verdicts = {drift[attr]["verdict"] for attr, _ in query.labels if attr in drift}
    return next((verdict for verdict in (OTHER_WEIGHTS, DIFFERENT, TOO_FEW) if verdict in verdicts), LIKE)


class DriftComparison:
    """Compares the scores of Docs with those of the data that a pipe was fitted on."""

    def __init__(self, pipe: Calibrator, record: FitRecord):
        self.pipe, self._profile = pipe, record.profile
        self._reader = PredictedLabelReader(pipe.attr, pipe.lookup.labels())
        self._read: list[LabelPredictions] = []
        self._sums: DriftSums | None = None

    def see(self, doc: Doc) -> None:
        """Read the scores of the next Doc."""
        self._read.append(self._reader.read(doc))

    def add(self, documents: Sequence[int]) -> None:
        """Sum the scores of the Docs read since the last call. documents: Document of each; one call has all its Docs."""
        if not documents:
            return
        read, self._read = join_labels(self._read), []
        _, numbers = np.unique(documents, return_inverse=True)
        n_docs, doc_numbers = int(numbers.max()) + 1, numbers.reshape(-1)[read.documents]
        names = np.array([*self.pipe.lookup.labels(), "", None], dtype=object)[:-1][read.columns].tolist()
        tokens = UnitScores(doc_numbers, n_docs, names, read.raw, read.calibrated).take(np.argsort(doc_numbers, kind="stable"))
        spans = UnitScores(np.zeros(len(read.span_raw), dtype=np.intp), n_docs, None, read.span_raw, read.span_calibrated)
        sums = self._profile.sums_of(tokens, spans)
        self._sums = sums if self._sums is None else self._sums + sums

    def drift(self, seed: int) -> dict[str, Any]:
        """Return the drift summary of `expect`; {} without Docs. seed (int): Seed of the simulated differences."""
        if self._sums is None:
            return {}
        summary = summarize_drift(self._profile.compare_sums(self._sums, seed))
        return {**summary, "verdict": OTHER_WEIGHTS} if self.pipe.lookup.weights_changed() else summary


@dataclass(eq=False)
class QueryResults:
    """The results of one query in many Docs, as arrays.

    documents (list[Ints]), raw, calibrated (list[Floats]): Document number and scores of each unit, an array for each batch.
    numbers, n_found (array): Document number of each Doc, and how many units satisfy the query by their predicted labels.
    gold_counts (Counter): Document number -> gold count. tokens
    (float): Expected number of tokens in entities.
    """

    documents: list[Ints] = field(default_factory=list)
    raw: list[Floats] = field(default_factory=list)
    calibrated: list[Floats] = field(default_factory=list)
    numbers: array[int] = field(default_factory=partial(array, "q"))
    n_found: array[int] = field(default_factory=partial(array, "q"))
    gold_counts: Counter[int] = field(default_factory=Counter)
    tokens: float = 0.0

    def add(self, results: Sequence[tuple[int, QueryResult]]) -> None:
        """Add (document number, result) of more Docs."""
        numbers = [number for number, _ in results]
        self.documents.append(np.repeat(numbers, [len(result.raw) for _, result in results]).astype(np.int32))
        for name in ("raw", "calibrated"):
            getattr(self, name).append(np.concatenate([np.zeros(0), *(getattr(result, name) for _, result in results)]))
        self.numbers.extend(numbers)
        self.n_found.extend(result.n_found for _, result in results)
        self.tokens += sum(result.tokens or 0.0 for _, result in results)

    def join(self, query: LabelQuery, sizes: Floats) -> CountInputs:
        """Return the results of all Docs, and release the memory of this object. sizes (Floats): Tokens of each document."""
        columns = ((self.documents, np.int32), (self.raw, np.float64), (self.calibrated, np.float64))
        documents, raw, calibrated_scores = (np.concatenate([np.zeros(0, dtype=dtype), *parts]) for parts, dtype in columns)
        for parts, _ in columns:
            parts.clear()
        numbers = np.array(self.numbers, dtype=np.intp)
        n_found = np.bincount(numbers, np.array(self.n_found), minlength=len(sizes)).astype(np.intp)
        unit_sizes = self._count_units(query, calibrated_scores, sizes)
        for scores in (raw, calibrated_scores):
            np.clip(scores, 0.0, 1.0, out=scores)
        units = UncertainUnits(documents, raw, calibrated_scores, n_found, unit_sizes)
        return CountInputs(units.as_documents() if query.unit == DOCUMENT else units)

    def _count_units(self, query: LabelQuery, calibrated_scores: Floats, sizes: Floats) -> Floats | None:
        """Return the units of each document: its tokens, for entities divided by their mean length; None if undefined."""
        if query.unit == TOKEN:
            return sizes
        return sizes * (float(calibrated_scores.sum()) / self.tokens) if query.unit == ENTITY and self.tokens else None


def join_results(query: LabelQuery, results: Sequence[tuple[int, QueryResult]], sizes: Floats) -> CountInputs:
    """Join the results of a query. results: (document number, result) of each Doc. sizes (Floats): Tokens of each document."""
    collection = QueryResults()
    collection.add(results)
    return collection.join(query, sizes)


class CorpusCounter:
    """Runs queries over annotated Docs, none of which is kept.

    key (str | None): Key of the lines by whose value texts are grouped. period (str | None): Period of its dates. path (Path):
    File of the texts, for messages. gold (bool): Whether gold is counted too; drift is not checked then. has_scores (bool):
    Whether a pipe has written scores so far. gold_attrs (set[str]): Prefixes of the pipes whose annotation the gold has.
    """

    def __init__(
        self,
        pipes: Sequence[Calibrator],
        queries: Sequence[LabelQuery],
        key: str | None = None,
        period: str | None = None,
        path: Path = Path(),
        gold: bool = False,
    ):
        attrs: Collection[str] = () if gold else {attr for query in queries for attr, _ in query.labels}
        self._pipes, self._queries, self._key, self._period, self._path, self._gold = pipes, queries, key, period, path, gold
        self._comparisons = [
            DriftComparison(pipe, record) for pipe in pipes if pipe.attr in attrs and (record := read_record(pipe)) is not None
        ]
        self.has_scores, self.gold_attrs = False, set[str]()
        self._numbers = DocumentNumbers()
        self._results = [QueryResults() for _ in queries]
        self._groups: list[str] = []
        self._names: dict[str, str] = {}  # one string for each name, not one for each document
        self._sizes, self._digests = array("q"), array("q")

    def add(self, examples: Iterable[Example]) -> None:
        """Run the queries over more examples. RAISES C397: a text has no group."""
        view_of = lru_cache(maxsize=_N_VIEWS)(doc_view)  # all queries read a Doc before the next one comes
        batch_results: list[list[tuple[int, QueryResult]]] = [[] for _ in self._queries]
        numbers = []
        for example in examples:
            number = self._number_document(example)
            numbers.append(number)
            for comparison in self._comparisons:
                comparison.see(example.predicted)
            self.has_scores = self.has_scores or any(view_of(example.predicted, pipe.attr) is not None for pipe in self._pipes)
            for query, results, collection in zip(self._queries, batch_results, self._results, strict=True):
                results.append((number, query.answer(example.predicted, view_of)))
                if self._gold:
                    collection.gold_counts[number] += query.count_gold(example.reference)
            for pipe in self._pipes if self._gold else ():
                layer = get_annotation(pipe.fit_info.layer)
                if pipe.attr not in self.gold_attrs and layer.gold_hashes(example.reference).any():
                    self.gold_attrs.add(pipe.attr)
        for results, collection in zip(batch_results, self._results, strict=True):
            collection.add(results)
        for comparison in self._comparisons:
            comparison.add(numbers)

    def _number_document(self, example: Example) -> int:
        """Return the number of an example's document, and add the example to its size and digest."""
        number, group = self._numbers.number(document_of(example)), self._find_group(example.reference)
        if number == len(self._groups):
            self._groups.append(self._names.setdefault(group, group))
            self._sizes.append(0)
            self._digests.append(0)
        self._sizes[number] += len(example.predicted)
        self._digests[number] = hash_text(example.predicted.text, self._digests[number])
        return number

    def _find_group(self, doc: Doc) -> str:
        if self._key is None:
            return ""
        line = doc.user_data.get(ORIGIN, {}).get("line", len(self._groups) + 1)
        return name_group(value_of(doc, self._key), line, self._path, self._key, self._period)

    def drift(self, seed: int) -> dict[str, dict[str, Any]]:
        """Return the drift summary of each pipe, by prefix."""
        return {comparison.pipe.attr: drift for comparison in self._comparisons if (drift := comparison.drift(seed))}

    def join(self) -> CorpusCounts:
        """Return the results of all queries in all Docs, and release the memory of this object."""
        sizes = np.array(self._sizes, dtype=np.float64)
        counts = np.zeros((len(self._queries), len(sizes)), dtype=np.intp)
        for i, (query, collection) in enumerate(zip(self._queries, self._results, strict=True)):
            counts[i, list(collection.gold_counts)] = list(collection.gold_counts.values())
            if query.unit == DOCUMENT:
                counts[i] = np.minimum(counts[i], 1)
        inputs = [collection.join(query, sizes) for query, collection in zip(self._queries, self._results, strict=True)]
        return CorpusCounts(inputs, self._groups, sizes, self._numbers.unit, counts, self._digests)


def hash_text(text: str, prefix: int = 0) -> int:
    """Return a text's bytes without white space, as a number modulo a prime (Rabin 1981).

    prefix (int): Hash of the text before it, so that a document has the same hash however it is split into Docs.
    """
    text_bytes = "".join(text.split()).encode()
    return (prefix * pow(256, len(text_bytes), _PRIME) + int.from_bytes(text_bytes, "big")) % _PRIME


def name_group(value: Any, line: int, path: Path, key: str, period: str | None) -> str:
    """Return the name of the group in which a text is counted. RAISES C397: no value under the key, or no date for a period."""
    why, name = "", name_of(value)
    if name is None:
        why = "there is none" if value is None else f"{brief(repr(value))} is no name"
    elif period is not None:
        try:
            return find_period(value, period)
        except ValueError as error:
            why = f"{brief(repr(value))}: {brief(error, 160)}"
    if why:
        raise calib_error("C397", line=line, path=path, key=key, why=why)
    return str(name)
