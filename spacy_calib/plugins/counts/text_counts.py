"""What a pipeline with calib pipes can count, and the answers of annotated Docs, which are let go one by one."""

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
from ...doc.predicted_labels import Carried, CarriedReader, join
from ...doc.view import doc_view
from ...errors import brief
from ...gold.keys import ORIGIN, name_of, value_of
from ...gold.reading import document_of
from ...pairs.documents import DocumentNumbers
from ...pipe.component import Calibrator
from ...pipe.label_names import merged_labels, shown_columns
from ...pipe.record.drift import DIFFERENT, LIKE, OTHER_WEIGHTS, TOO_FEW, DriftSums, Labelled
from ...pipe.record.effects import WIDTHS, Effects
from ...pipe.record.fit_record import FitRecord, read_record
from ...types import Floats, Ints
from ..expect.summary import told_of_drift
from .counting import CountInputs, Gathered, Units
from .distribution import Counted, drawn
from .messages import calib_error
from .periods import period_of
from .queries.base import DOCUMENT, ENTITY, TOKEN, LabelQuery, Query, QueryResult, Scored
from .queries.patterns import QueryAbilities

# Prefixes of scores that a Doc may have, at most, so that none is read twice.
_PIPES = 8
_PRIME = 2**61 - 1
# Factories whose pipes set nothing but annotations of their own, and read the words and what they listen to. (A calib pipe reads its component too.)
_ALONE = frozenset(
    {
        "tok2vec", "tagger", "morphologizer", "senter", "parser", "ner", "spancat", "spancat_singlelabel", "textcat",
        "textcat_multilabel", "calib", "calib_ner",
    }
)  # fmt: skip
# Those that read all that stands before them, and set nothing that a calib pipe scores; a ruler may change tags, but no entities.
_READERS = frozenset({"lemmatizer", "calib_coref"})
_RULER = "attribute_ruler"


def asked_of(nlp: Language, pipes: Sequence[Calibrator]) -> QueryAbilities:
    """Return what these pipes, and the pipeline around them, can be asked."""
    factories = {nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
    parses = any({"token.dep", "doc.noun_chunks"} & set(nlp.get_pipe_meta(name).assigns) for name in nlp.pipe_names)
    scores = [
        Scored(pipe.attr, pipe.fit_info.layer, pipe.lookup.labels(), names=shown_columns(pipe), merged=merged_labels(pipe))
        for pipe in pipes
    ]
    # The score of an arc is not that of its label.
    label_scores = [score for score in scores if not score.annotation.compares_arcs]
    return QueryAbilities(label_scores, "calib_coref" in factories, parses, nlp.vocab)


def pipes_for(nlp: Language, pipes: Sequence[Calibrator], queries: Sequence[Query]) -> list[str]:
    """The pipes that have to run, in order; queries of scores and words leave out the parser, most of the work."""
    names = nlp.pipe_names
    if not pipes or not all(query.of_scores for query in queries):
        return names
    of_entities = all(plain_name(pipe.fit_info.layer) in ("ner", "biluo") for pipe in pipes)
    idle = _ALONE | _READERS | ({_RULER} if of_entities else set())
    names_to_run = {name for pipe in pipes for name in (pipe.name, pipe.source.component)}
    factories = {name: nlp.get_pipe_meta(name).factory for name in names}
    for place in reversed(range(len(names))):
        name = names[place]
        if name not in names_to_run and factories[name] in idle:
            continue
        upstream = names[:place]
        if factories[name] in _ALONE:
            upstream = [
                candidate for candidate in upstream if name in getattr(nlp.get_pipe(candidate), "listening_components", ())
            ]
        names_to_run.update((name, *upstream))
    return [name for name in names if name in names_to_run]


def effects_for(query: Query, pipes: Sequence[Calibrator]) -> Effects | None:
    """Return what the fits learned about the counts of the labels of a query: the widest, or None."""
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


def verdict_for(query: Query, drift: Mapping[str, Any]) -> str:
    """Return the worst drift verdict of the pipes that a query reads. drift (Mapping): From `Counting.drift`."""
    verdicts = {drift[attr]["verdict"] for attr, _ in query.labels if attr in drift}
    return next((verdict for verdict in (OTHER_WEIGHTS, DIFFERENT, TOO_FEW) if verdict in verdicts), LIKE)


class DriftComparison:
    """Compares Docs with the data that a pipe was fitted on."""

    def __init__(self, pipe: Calibrator, record: FitRecord):
        self.pipe, self._profile = pipe, record.profile
        self._reader = CarriedReader(pipe.attr, pipe.lookup.labels())
        self._read: list[Carried] = []
        self._sums: DriftSums | None = None

    def see(self, doc: Doc) -> None:
        """Read the scores of the next Doc."""
        self._read.append(self._reader.read(doc))

    def add(self, documents: Sequence[int]) -> None:
        """Add the Docs that were read to the sums. documents: The document of each; none has parts in another call."""
        if not documents:
            return
        read, self._read = join(self._read), []
        _, numbers = np.unique(documents, return_inverse=True)
        n_docs, doc_numbers = int(numbers.max()) + 1, numbers.reshape(-1)[read.documents]
        names = np.array([*self.pipe.lookup.labels(), "", None], dtype=object)[:-1][read.columns].tolist()
        tokens = Labelled(doc_numbers, n_docs, names, read.raw, read.calibrated).take(np.argsort(doc_numbers, kind="stable"))
        spans = Labelled(np.zeros(len(read.span_raw), dtype=np.intp), n_docs, None, read.span_raw, read.span_calibrated)
        sums = self._profile.sums_of(tokens, spans)
        self._sums = sums if self._sums is None else self._sums + sums

    def drift(self, seed: int) -> dict[str, Any]:
        """Return the drift summary of `expect`; {} without Docs. seed (int): Of the simulated chance differences."""
        if self._sums is None:
            return {}
        summary = told_of_drift(self._profile.judge(self._sums, seed))
        return {**summary, "verdict": OTHER_WEIGHTS} if self.pipe.lookup.weights_changed() else summary


@dataclass(eq=False)
class QueryResults:
    """The answers of Docs to one query, as arrays.

    documents (list[Ints]), raw, calibrated (list[Floats]): Of units, by part. numbers, found (array): Of each Doc. true
    (Counter): Document -> gold count. draws (list | None): See `CountInputs`. tokens (float): Expected number of tokens in
    entities.
    """

    documents: list[Ints] = field(default_factory=list)
    raw: list[Floats] = field(default_factory=list)
    calibrated: list[Floats] = field(default_factory=list)
    numbers: array[int] = field(default_factory=partial(array, "q"))
    found: array[int] = field(default_factory=partial(array, "q"))
    true: Counter[int] = field(default_factory=Counter)
    draws: list[tuple[int, Counted]] | None = None
    tokens: float = 0.0

    def add(self, answers: Sequence[tuple[int, QueryResult]]) -> None:
        """Add (document number, answer) of more Docs."""
        numbers = [number for number, _ in answers]
        self.documents.append(np.repeat(numbers, [len(answer.raw) for _, answer in answers]).astype(np.int32))
        for name in ("raw", "calibrated"):
            getattr(self, name).append(np.concatenate([np.zeros(0), *(getattr(answer, name) for _, answer in answers)]))
        self.numbers.extend(numbers)
        self.found.extend(answer.found for _, answer in answers)
        self.tokens += sum(answer.tokens or 0.0 for _, answer in answers)
        for number, answer in answers:
            if answer.draws is not None:
                self.draws = [] if self.draws is None else self.draws
                if answer.draws.any():
                    self.draws.append((number, drawn(answer.draws)))

    def answered(self, query: Query, sizes: Floats) -> CountInputs:
        """Return all answers; the arrays are given away. sizes (Floats): Tokens of each document."""
        columns = ((self.documents, np.int32), (self.raw, np.float64), (self.calibrated, np.float64))
        documents, raw, calibrated_scores = (np.concatenate([np.zeros(0, dtype=dtype), *parts]) for parts, dtype in columns)
        for parts, _ in columns:
            parts.clear()
        numbers = np.array(self.numbers, dtype=np.intp)
        n_found = np.bincount(numbers, np.array(self.found), minlength=len(sizes)).astype(np.intp)
        of_units = self._sizes(query, calibrated_scores, sizes)
        for chances in (raw, calibrated_scores):
            np.clip(chances, 0.0, 1.0, out=chances)
        units = Units(documents, raw, calibrated_scores, n_found, of_units)
        return CountInputs(units.by_document() if query.unit == DOCUMENT else units, self.draws)

    def _sizes(self, query: Query, calibrated_scores: Floats, sizes: Floats) -> Floats | None:
        """Return the tokens of each document, for entities divided by their mean length; None where that is undefined."""
        if isinstance(query, LabelQuery) and query.unit == TOKEN:
            return sizes
        return sizes * (float(calibrated_scores.sum()) / self.tokens) if query.unit == ENTITY and self.tokens else None


def answered(query: Query, answers: Sequence[tuple[int, QueryResult]], sizes: Floats) -> CountInputs:
    """Return the answers of Docs to a query. answers: (document number, answer). sizes (Floats): Tokens of each document."""
    collection = QueryResults()
    collection.add(answers)
    return collection.answered(query, sizes)


class Counting:
    """Asks annotated Docs one after the other, and keeps nothing of them.

    key, every (str | None): How texts are grouped, see `group_of`. path (Path): Where they are from. gold (bool): Whether gold
    is counted too; drift is not checked then. scored (bool): Whether a pipe has written scores so far. annotated (set[str]):
    Prefixes of the pipes whose labels the gold has.
    """

    def __init__(
        self,
        pipes: Sequence[Calibrator],
        queries: Sequence[Query],
        key: str | None = None,
        every: str | None = None,
        path: Path = Path(),
        gold: bool = False,
    ):
        attrs: Collection[str] = () if gold else {attr for query in queries for attr, _ in query.labels}
        self._pipes, self._queries, self._key, self._period, self._path, self._gold = pipes, queries, key, every, path, gold
        self._comparisons = [
            DriftComparison(pipe, record) for pipe in pipes if pipe.attr in attrs and (record := read_record(pipe)) is not None
        ]
        self.scored, self.annotated = False, set[str]()
        self._numbers = DocumentNumbers()
        self._answers = [QueryResults() for _ in queries]
        self._groups: list[str] = []
        self._names: dict[str, str] = {}  # one string for each name, not one for each document
        self._sizes, self._texts = array("q"), array("q")

    def add(self, examples: Iterable[Example]) -> None:
        """Add more examples. RAISES C396: gold lacks an attribute of a query. C397: see `group_of`."""
        view_of = lru_cache(maxsize=_PIPES)(doc_view)  # a Doc is asked by all queries before the next one comes
        answers: list[list[tuple[int, QueryResult]]] = [[] for _ in self._queries]
        numbers = []
        for example in examples:
            number = self._document(example)
            numbers.append(number)
            for comparison in self._comparisons:
                comparison.see(example.predicted)
            self.scored = self.scored or any(view_of(example.predicted, pipe.attr) is not None for pipe in self._pipes)
            for query, query_answers, collection in zip(self._queries, answers, self._answers, strict=True):
                query_answers.append((number, query.answer(example.predicted, view_of)))
                if self._gold:
                    for key in query.needs:
                        if example.reference.text.strip() and not example.reference.has_annotation(key):
                            raise calib_error("C396", query=repr(query.text), key=key, path=self._path)
                    collection.true[number] += query.true(example.reference)
            for pipe in self._pipes if self._gold else ():
                layer = get_annotation(pipe.fit_info.layer)
                if pipe.attr not in self.annotated and layer.gold_hashes(example.reference).any():
                    self.annotated.add(pipe.attr)
        for query_answers, collection in zip(answers, self._answers, strict=True):
            collection.add(query_answers)
        for comparison in self._comparisons:
            comparison.add(numbers)

    def _document(self, example: Example) -> int:
        """Return the number of an example's document, after noting its size, text and group."""
        number, group = self._numbers.number(document_of(example)), self._group_of(example.reference)
        if number == len(self._groups):
            self._groups.append(self._names.setdefault(group, group))
            self._sizes.append(0)
            self._texts.append(0)
        self._sizes[number] += len(example.predicted)
        self._texts[number] = text_number(example.predicted.text, self._texts[number])
        return number

    def _group_of(self, doc: Doc) -> str:
        if self._key is None:
            return ""
        line = doc.user_data.get(ORIGIN, {}).get("line", len(self._groups) + 1)
        return group_of(value_of(doc, self._key), line, self._path, self._key, self._period)

    def drift(self, seed: int) -> dict[str, dict[str, Any]]:
        """Return the drift summary of each pipe, by prefix."""
        return {comparison.pipe.attr: drift for comparison in self._comparisons if (drift := comparison.drift(seed))}

    def gathered(self) -> Gathered:
        """Return all answers."""
        sizes = np.array(self._sizes, dtype=np.float64)
        counts = np.zeros((len(self._queries), len(sizes)), dtype=np.intp)
        for place, (query, collection) in enumerate(zip(self._queries, self._answers, strict=True)):
            counts[place, list(collection.true)] = list(collection.true.values())
            if query.unit == DOCUMENT:
                counts[place] = np.minimum(counts[place], 1)
        answers = [collection.answered(query, sizes) for query, collection in zip(self._queries, self._answers, strict=True)]
        return Gathered(answers, self._groups, sizes, self._numbers.unit, counts, self._texts)


def text_number(text: str, prefix: int = 0) -> int:
    """Return a text's bytes without white space as a number modulo a prime (Rabin 1981). prefix (int): Of the text before."""
    text_bytes = "".join(text.split()).encode()
    return (prefix * pow(256, len(text_bytes), _PRIME) + int.from_bytes(text_bytes, "big")) % _PRIME


def group_of(value: Any, line: int, path: Path, key: str, every: str | None) -> str:
    """Return the group in which a text is counted. RAISES C397: no value under the key, or no date for a period."""
    why, name = "", name_of(value)
    if name is None:
        why = "there is none" if value is None else f"{brief(repr(value))} is no name"
    elif every is not None:
        try:
            return period_of(value, every)
        except ValueError as error:
            why = f"{brief(repr(value))}: {brief(error, 160)}"
    if why:
        raise calib_error("C397", line=line, path=path, key=key, why=why)
    return str(name)
