"""Texts -> what each query answers of each document, and by what the documents are counted."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import brief, calib_error
from ...expect.counting import Estimate, Units, corrected, estimate, told
from ...expect.distribution import Counted, added, drawn
from ...expect.drift import LIKE
from ...expect.effects import WIDTHS, Effects
from ...expect.prediction_powered import Known
from ...pairs.documents import DocumentNumbers
from ...types import Floats, Ints
from ..shared.records import FIELDS, Fields

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example

    from ...doc.queries.base import Answer, Query
    from ...doc.queries.reading import Asked
    from ...pipe.component import Calibrator

# Prefixes of scores that a Doc may have, at most, so that none is read twice.
_PIPES = 8
_PRIME = 2**61 - 1


def asked_of(nlp: Language, pipes: Sequence[Calibrator]) -> Asked:
    """What these pipes, and the pipeline around them, can be asked."""
    from ...doc.queries.base import Scored
    from ...doc.queries.reading import Asked

    factories = {nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
    parses = any({"token.dep", "doc.noun_chunks"} & set(nlp.get_pipe_meta(name).assigns) for name in nlp.pipe_names)
    every = [Scored(pipe.attr, pipe.fit_info.layer, pipe.lookup.labels()) for pipe in pipes]
    scored = [one for one in every if not one.annotation.judges]  # the score of an arc is not that of its label
    return Asked(scored, "calib_coref" in factories, parses, nlp.vocab)


def effects_for(query: Query, pipes: Sequence[Calibrator]) -> Effects | None:
    """What the fits learned of the labels that a query asks for; the widest where they are several. None where they learned nothing."""
    records = {pipe.attr: pipe.learned.record for pipe in pipes}
    held = [
        record.effects[label]
        for attr, label in query.labels
        if (record := records[attr]) is not None and label in record.effects
    ]
    if len(held) <= 1:
        return held[0] if held else None
    widest = max(held, key=lambda one: sum(np.square(WIDTHS[: len(one.widths)]) * one.widths))
    shared = max(one.shared for one in held)
    return Effects(max(one.between for one in held), 0.0, shared, widths=widest.widths, sources=widest.sources)


@dataclass(frozen=True, eq=False)
class Answered:
    """What one query answered of N documents.

    query (Query). units (Units): Those that may satisfy it. draws (list | None): (document, distribution of its number) of documents whose units depend
    on each other, where the number may be more than 0; None where none do.
    """

    query: Query
    units: Units
    draws: list[tuple[int, Counted]] | None

    @classmethod
    def of(cls, query: Query, answers: Sequence[tuple[int, Answer]], sizes: Floats) -> Answered:
        """answers: (number of the document, what was answered) of each Doc. sizes (Floats): Tokens of each document."""
        held = Answers()
        held.add(answers)
        return cls.of_answers(query, held, sizes)

    @classmethod
    def of_answers(cls, query: Query, answers: Answers, sizes: Floats) -> Answered:
        """sizes (Floats): Tokens of each document."""
        from ...doc.queries.base import DOCUMENTS

        n_docs = len(sizes)
        documents, raw, calibrated = answers.take()
        numbers = np.array(answers.numbers, dtype=np.intp)
        found = np.bincount(numbers, np.array(answers.found), minlength=n_docs).astype(np.intp)
        sizes_of_units = answers.sizes_of(query, calibrated, sizes)
        for chances in (raw, calibrated):
            np.clip(chances, 0.0, 1.0, out=chances)
        units = Units(documents, raw, calibrated, found, sizes_of_units)
        if query.unit == DOCUMENTS:
            units = units.by_document()
        return cls(query, units, answers.draws)

    @property
    def matched(self) -> bool:
        """Whether anything satisfies it, or has a chance to."""
        return bool(self.units.found.any() or self.units.calibrated.any())

    def estimate(self, own: Ints, effects: Effects | None, confidence: float, verdict: str = LIKE) -> Estimate:
        """In some documents. own (Ints): Their numbers, ascending. verdict (str): Whether all of them are like the fit data, see `Drift`."""
        units = self.units.of(own)
        if self.draws is None:
            return estimate(units, effects, confidence, verdict)
        kept = set(own.tolist())
        parts = [distribution for number, distribution in self.draws if number in kept]
        return told(int(units.found.sum()), reduce(added, parts, Counted(0, np.ones(1))), confidence)

    def by_raw(self, own: Ints, confidence: float) -> dict[str, float | None]:
        """What raw scores of independent units say of some documents; None of draws."""
        names = ("raw_expected", "raw_low", "raw_high")
        if self.draws is not None:
            return dict.fromkeys(names)
        units = self.units.of(own)
        return dict(zip(names, estimate(units._replace(calibrated=units.raw), None, confidence)[1:], strict=True))

    def corrected(self, own: Ints, sizes: Floats, known: Known, confidence: float, gold: Floats) -> Estimate:
        """As labelled documents correct it. sizes, gold (Floats): Of every document; see `corrected`."""
        return corrected(self.units.of(own), sizes[own], known, confidence, gold[own])


@dataclass(frozen=True, eq=False)
class Gathered:
    """What was read.

    answered (list[Answered]): Of each query. groups (list[str]): By what each document is counted; "" for nothing. sizes (Floats): Tokens of each.
    unit (str): What a document is. true (Ints): What the gold of each document counts, for each query, (n_queries, n_docs). texts
    (array): A digest of the text of each, without its white space.
    """

    answered: list[Answered]
    groups: list[str]
    sizes: Floats
    unit: str
    true: Ints
    texts: array[int]

    def places_in(self, labelled: Gathered) -> Ints:
        """Where each document is among labelled ones, -1 where it is not."""
        places = {text: place for place, text in enumerate(labelled.texts)}
        return np.array([places.get(text, -1) for text in self.texts], dtype=np.intp)

    def gold_in(self, labelled: Gathered, place: int) -> Floats:
        """What the gold counts in each document that is a labelled one, for one query; NaN of the others, shape (n_docs,)."""
        places = self.places_in(labelled)
        return np.where(places >= 0, labelled.true[place][places].astype(np.float64), np.nan)

    def known(self, place: int) -> Known:
        """The labelled documents, for one query."""
        units = self.answered[place].units
        columns = (self.true[place].astype(np.float64), units.expected, units.open, self.sizes)
        return Known(*(column[:, None] for column in columns))


@dataclass(eq=False)
class Answers:
    """What one query answered of the Docs so far, as arrays: a few bytes for each document, and for each unit that may satisfy it.

    documents (list[Ints]), raw, calibrated (list[Floats]): Of units, by part. numbers (array), found (array): Of each Doc. true (Counter): Document ->
    what its gold counts. draws (list | None): See `Answered`. tokens (float): To be expected in entities, see Answer.
    """

    documents: list[Ints] = field(default_factory=list)
    raw: list[Floats] = field(default_factory=list)
    calibrated: list[Floats] = field(default_factory=list)
    numbers: array[int] = field(default_factory=partial(array, "q"))
    found: array[int] = field(default_factory=partial(array, "q"))
    true: Counter[int] = field(default_factory=Counter)
    draws: list[tuple[int, Counted]] | None = None
    tokens: float = 0.0

    def add(self, answers: Sequence[tuple[int, Answer]]) -> None:
        """(number of the document, what was answered) of more Docs."""
        numbers = [number for number, _ in answers]
        self.documents.append(np.repeat(numbers, [len(one.raw) for _, one in answers]).astype(np.int32))
        for name in ("raw", "calibrated"):
            getattr(self, name).append(np.concatenate([np.zeros(0), *(getattr(one, name) for _, one in answers)]))
        self.numbers.extend(numbers)
        self.found.extend(one.found for _, one in answers)
        self.tokens += sum(one.tokens or 0.0 for _, one in answers)
        for number, one in answers:
            if one.draws is not None:
                self.draws = [] if self.draws is None else self.draws
                if one.draws.any():
                    self.draws.append((number, drawn(one.draws)))

    def take(self) -> tuple[Ints, Floats, Floats]:
        """(document, raw, calibrated) of all units, which are given away."""
        given = ((self.documents, np.int32), (self.raw, np.float64), (self.calibrated, np.float64))
        documents, raw, calibrated = (np.concatenate([np.zeros(0, dtype=dtype), *parts]) for parts, dtype in given)
        for parts, _ in given:
            parts.clear()
        return documents, raw, calibrated

    def sizes_of(self, query: Query, calibrated: Floats, sizes: Floats) -> Floats | None:
        """Tokens of each document, among which are such of a label that have no score of it; of entities as many fewer as these have tokens.

        calibrated (Floats): All of them. sizes (Floats): Tokens of each document. RETURNS: None where that is not to be said: of patterns,
        documents, and entities that have scores as a whole.
        """
        from ...doc.queries.base import ENTITIES, TOKENS
        from ...doc.queries.labels import LabelQuery

        if isinstance(query, LabelQuery) and query.unit == TOKENS:
            return sizes
        return sizes * (float(calibrated.sum()) / self.tokens) if query.unit == ENTITIES and self.tokens else None


class Gathering:
    """Asks Docs, some after the others; holds nothing of them.

    queries (Sequence[Query]). key (str | None): By what texts are counted, see `group_of`. path (Path): Where they are from. gold (bool): Whether the gold is counted too.
    """

    def __init__(self, queries: Sequence[Query], key: str | None, every: str | None, path: Path, gold: bool = False):
        self._queries, self._key, self._every, self._path, self._gold = queries, key, every, path, gold
        self._numbers = DocumentNumbers()
        self._answers = [Answers() for _ in queries]
        self._groups: list[str] = []
        self._names: dict[str, str] = {}  # one string for each name, not one for each document
        self._sizes, self._texts = array("q"), array("q")

    def add(self, examples: Iterable[Example]) -> None:
        """The next ones. RAISES C396: see `check_annotated`. C397: see `group_of`."""
        from ...doc.attributes import doc_view
        from ...doc.reading import document_of

        view_of = lru_cache(maxsize=_PIPES)(doc_view)  # a Doc is asked by all queries before the next one comes
        answers: list[list[tuple[int, Answer]]] = [[] for _ in self._queries]
        for example in examples:
            number = self._numbers.number(document_of(example))
            group = self._group_of(example.reference)
            if number == len(self._groups):
                self._groups.append(self._names.setdefault(group, group))
                self._sizes.append(0)
                self._texts.append(0)
            self._sizes[number] += len(example.predicted)
            self._texts[number] = text_number(example.predicted.text, self._texts[number])
            for query, own, held in zip(self._queries, answers, self._answers, strict=True):
                own.append((number, query.answer(example.predicted, view_of)))
                if self._gold:
                    check_annotated(query, example.reference, self._path)
                    held.true[number] += query.true(example.reference)
        for own, held in zip(answers, self._answers, strict=True):
            held.add(own)

    def _group_of(self, doc: Doc) -> str:
        from ...doc.collect import ORIGIN

        if self._key is None:
            return ""
        origin = doc.user_data.get(ORIGIN, {"date": doc.user_data.get(self._key), "line": len(self._groups) + 1})
        return group_of(origin, self._path, self._key, self._every)

    def gathered(self) -> Gathered:
        """What was answered."""
        from ...doc.queries.base import DOCUMENTS

        sizes = np.array(self._sizes, dtype=np.float64)
        counts = np.zeros((len(self._queries), len(sizes)), dtype=np.intp)
        for place, (query, held) in enumerate(zip(self._queries, self._answers, strict=True)):
            counts[place, list(held.true)] = list(held.true.values())
            if query.unit == DOCUMENTS:
                counts[place] = np.minimum(counts[place], 1)
        answered = [Answered.of_answers(query, held, sizes) for query, held in zip(self._queries, self._answers, strict=True)]
        return Gathered(answered, self._groups, sizes, self._numbers.unit, counts, self._texts)


def text_number(text: str, before: int = 0) -> int:
    """What tells texts apart, without their white space, in which tokenizers differ: their bytes as one number, modulo a prime (Rabin 1981).

    before (int): That of the text before it, where one comes in pieces.
    """
    given = "".join(text.split()).encode()
    return (before * pow(256, len(given), _PRIME) + int.from_bytes(given, "big")) % _PRIME


def check_annotated(query: Query, doc: Doc, path: Path) -> None:
    """Whether a gold Doc has what a query takes as it stands. RAISES C396: it has not."""
    for key in query.needs:
        if doc.text.strip() and not doc.has_annotation(key):
            raise calib_error("C396", query=repr(query.text), key=key, path=path)


def group_of(origin: dict[str, Any], path: Path, key: str, every: str | None) -> str:
    """By what a text is counted. RAISES C397: there is nothing under the key, or no date where a period is asked for."""
    from ...expect.periods import period_of

    given = origin.get("date")
    why = ""
    if given is None or isinstance(given, (dict, list)) or not str(given).strip():
        why = "there is none" if given is None else f"{brief(repr(given))} is no name"
    elif every is not None:
        try:
            return period_of(given, every)
        except ValueError as error:
            why = f"{brief(repr(given))}: {brief(error, 160)}"
    if why:
        raise calib_error("C397", line=origin.get("line", "?"), path=path, key=key, why=why)
    return str(given).strip()


def check_groups(path: Path, key: str, every: str | None, fields: Fields = FIELDS) -> None:
    """Look at all texts before the work begins. (A file of gold, and a FIFO, are looked at as they come.)

    RAISES C397: see `group_of`. C074: see `read_texts`.
    """
    from ...doc.reading import GOLD_SUFFIXES
    from ..shared.texts import read_texts, text_files

    for file in text_files(path):
        if file.suffix not in GOLD_SUFFIXES and file.is_file():
            for _, origin in read_texts(file, key, fields):
                group_of(origin, file, key, every)
