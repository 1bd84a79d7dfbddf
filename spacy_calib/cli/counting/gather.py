"""Texts -> what each query answers of each document, and by what the documents are counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...counts.distribution import Counted, added, drawn
from ...counts.estimate import Estimate, Units, corrected, estimate, told
from ...errors import calib_error
from ...expect.effects import Effects
from ...expect.prediction_powered import Known
from ...types import Floats, Ints

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example

    from ...doc.queries.base import Answer, Query
    from ...doc.queries.reading import Asked
    from ...pipe.component import Calibrator


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
    return Effects(max(one.between for one in held), 0.0, max(one.shared for one in held))


@dataclass(frozen=True, eq=False)
class Answered:
    """What one query answered of N documents.

    query (Query). units (Units): Those that may satisfy it. draws (list): (document, draws) of documents whose units depend on each other.
    """

    query: Query
    units: Units
    draws: list[tuple[int, Ints]]

    @classmethod
    def of(cls, query: Query, answers: Sequence[tuple[int, Answer]], sizes: Floats) -> Answered:
        """answers: (number of the document, what was answered) of each Doc. sizes (Floats): Tokens of each document."""
        from ...doc.queries.base import DOCUMENTS, TOKENS
        from ...doc.queries.labels import LabelQuery

        n_docs = len(sizes)
        of_label = query.unit == TOKENS and isinstance(query, LabelQuery)

        none = np.zeros(0)
        documents = np.repeat([number for number, _ in answers], [len(one.raw) for _, one in answers]).astype(np.intp)
        raw, calibrated = (
            np.concatenate([none, *(getattr(one, name) for _, one in answers)]) for name in ("raw", "calibrated")
        )
        found = np.bincount([number for number, _ in answers], [one.found for _, one in answers], minlength=n_docs).astype(
            np.intp
        )
        units = Units(documents, np.clip(raw, 0.0, 1.0), np.clip(calibrated, 0.0, 1.0), found, sizes if of_label else None)
        if query.unit == DOCUMENTS:
            units = units.by_document()
        return cls(query, units, [(number, one.draws) for number, one in answers if one.draws is not None])

    @property
    def matched(self) -> bool:
        """Whether anything satisfies it, or has a chance to."""
        return bool(self.units.found.any() or self.units.calibrated.any())

    def estimate(self, own: Ints, effects: Effects | None, confidence: float) -> Estimate:
        """In some documents. own (Ints): Their numbers, ascending."""
        units = self.units.of(own)
        if not self.draws:
            return estimate(units, effects, confidence)
        kept = set(own.tolist())
        parts = [drawn(draws) for number, draws in self.draws if number in kept and draws.any()]
        return told(int(units.found.sum()), reduce(added, parts, Counted(0, np.ones(1))), confidence)

    def corrected(self, own: Ints, sizes: Floats, known: Known, confidence: float) -> Estimate:
        """As labelled documents correct it. sizes (Floats): Tokens of every document."""
        return corrected(self.units.of(own), sizes[own], known, confidence)


@dataclass(frozen=True, eq=False)
class Gathered:
    """What was read.

    answered (list[Answered]): Of each query. groups (list[str]): By what each document is counted; "" for nothing. sizes (Floats): Tokens of each.
    unit (str): What a document is. true (Ints): What the gold of each document counts, for each query, (n_queries, n_docs).
    """

    answered: list[Answered]
    groups: list[str]
    sizes: Floats
    unit: str
    true: Ints

    def known(self, place: int) -> Known:
        """The labelled documents, for one query."""
        units = self.answered[place].units
        columns = (self.true[place].astype(np.float64), units.expected, units.open, self.sizes)
        return Known(*(column[:, None] for column in columns))


@dataclass
class Seen:
    """What is noted of the Docs that pass.

    pipes (Sequence[Calibrator]). scored (bool): Whether one of them wrote scores. gold (set[str]): Prefixes of those whose labels the gold has.
    first (list[Doc]): One Doc.
    """

    pipes: Sequence[Calibrator]
    scored: bool = False
    gold: set[str] = field(default_factory=set)
    first: list[Doc] = field(default_factory=list)

    def over(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples."""
        from ...doc.annotations import get_annotation
        from ...doc.attributes import doc_view

        for example in examples:
            self.scored = self.scored or any(doc_view(example.predicted, pipe.attr) is not None for pipe in self.pipes)
            self.first = self.first or [example.predicted]
            for pipe in self.pipes:
                if pipe.attr not in self.gold and get_annotation(pipe.fit_info.layer).gold_hashes(example.reference).any():
                    self.gold.add(pipe.attr)
            yield example


def gather(
    examples: Iterable[Example], queries: Sequence[Query], key: str | None, every: str | None, path: Path, gold: bool = False
) -> Gathered:
    """Ask every Doc, and let it go.

    key (str | None): By what texts are counted, see `group_of`. gold (bool): Whether the gold is counted too.
    RAISES C396: see `check_annotated`. C397: see `group_of`.
    """
    from ...doc.collect import ORIGIN
    from ...doc.queries.base import DOCUMENTS
    from ...doc.reading import document_of
    from ...pairs.documents import DocumentNumbers

    numbers = DocumentNumbers()
    answers: list[list[tuple[int, Answer]]] = [[] for _ in queries]
    true: list[list[tuple[int, int]]] = [[] for _ in queries]
    groups: dict[int, str] = {}
    sizes: dict[int, int] = {}
    for example in examples:
        number = numbers.number(document_of(example))
        user_data = example.reference.user_data
        if key is not None:
            origin = user_data.get(ORIGIN, {"date": user_data.get(key), "line": len(groups) + 1})
            groups.setdefault(number, group_of(origin, path, key, every))
        sizes[number] = sizes.get(number, 0) + len(example.predicted)
        for place, query in enumerate(queries):
            answers[place].append((number, query.answer(example.predicted)))
            if gold:
                check_annotated(query, example.reference, path)
                true[place].append((number, query.true(example.reference)))
    n_docs = len(sizes)
    counts = np.zeros((len(queries), n_docs), dtype=np.intp)
    for place, query in enumerate(queries):
        for number, n in true[place]:
            counts[place, number] += n
        if query.unit == DOCUMENTS:
            counts[place] = np.minimum(counts[place], 1)
    held_sizes = np.array([sizes[number] for number in range(n_docs)], dtype=np.float64)
    answered = [Answered.of(query, held, held_sizes) for query, held in zip(queries, answers, strict=True)]
    return Gathered(answered, [groups.get(number, "") for number in range(n_docs)], held_sizes, numbers.unit, counts)


def check_annotated(query: Query, doc: Doc, path: Path) -> None:
    """Whether a gold Doc has what a query takes as it stands. RAISES C396: it has not."""
    for key in query.needs:
        if doc.text.strip() and not doc.has_annotation(key):
            raise calib_error("C396", query=repr(query.text), key=key, path=path)


def group_of(origin: dict[str, Any], path: Path, key: str, every: str | None) -> str:
    """By what a text is counted. RAISES C397: there is nothing under the key, or no date where a period is asked for."""
    from ...watch.periods import period_of

    given = origin.get("date")
    why = ""
    if given is None or isinstance(given, (dict, list)) or not str(given).strip():
        why = "there is none" if given is None else f"{given!r} is no name"
    elif every is not None:
        try:
            return period_of(given, every)
        except ValueError as error:
            why = f"{given!r}: {error}"
    if why:
        raise calib_error("C397", line=origin.get("line", "?"), path=path, key=key, why=why)
    return str(given).strip()


def check_groups(path: Path, key: str, every: str | None) -> None:
    """Look at all texts before the work begins. (A file of gold, and a FIFO, are looked at as they come.)

    RAISES C397: see `group_of`. C074: see `read_texts`.
    """
    from ...doc.reading import GOLD_SUFFIXES
    from ..shared.texts import read_texts, text_files

    for file in text_files(path):
        if file.suffix not in GOLD_SUFFIXES and file.is_file():
            for _, origin in read_texts(file, key):
                group_of(origin, file, key, every)
