"""What a pipeline with calib pipes can be asked to count; and annotated Docs, asked some after the others and let go."""

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

from ..doc.annotations import get_annotation, plain_name
from ..doc.carried import CarriedReader
from ..doc.collect import ORIGIN
from ..doc.keys import name_of, value_of
from ..doc.queries.base import DOCUMENT, ENTITY, TOKEN, Answer, LabelQuery, Query, Scored
from ..doc.queries.patterns import Asked
from ..doc.reading import document_of
from ..doc.view import doc_view
from ..errors import brief, calib_error
from ..expect.counting import Answered, Gathered, Units
from ..expect.distribution import Counted, drawn
from ..expect.drift import DIFFERENT, LIKE, OTHER_WEIGHTS, TOO_FEW, DriftSums, Labelled
from ..expect.effects import WIDTHS, Effects
from ..expect.periods import period_of
from ..expect.record import FitRecord
from ..expect.summary import told_of_drift
from ..pairs.documents import DocumentNumbers
from ..types import Floats, Ints
from .component import Calibrator

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


def asked_of(nlp: Language, pipes: Sequence[Calibrator]) -> Asked:
    """What these pipes, and the pipeline around them, can be asked."""
    factories = {nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
    parses = any({"token.dep", "doc.noun_chunks"} & set(nlp.get_pipe_meta(name).assigns) for name in nlp.pipe_names)
    every = [Scored(pipe.attr, pipe.fit_info.layer, pipe.lookup.labels()) for pipe in pipes]
    scored = [one for one in every if not one.annotation.judges]  # the score of an arc is not that of its label
    return Asked(scored, "calib_coref" in factories, parses, nlp.vocab)


def pipes_for(nlp: Language, pipes: Sequence[Calibrator], queries: Sequence[Query]) -> list[str]:
    """The names of the pipes that have to run, in their order: all where a query asks for more than scores and words, or a pipe is not known.

    (A parser is most of the work of a pipeline, and a label of entities has no use for it.)
    """
    names = nlp.pipe_names
    if not pipes or not all(query.of_scores for query in queries):
        return names
    of_entities = all(plain_name(pipe.fit_info.layer) in ("ner", "biluo") for pipe in pipes)
    idle = _ALONE | _READERS | ({_RULER} if of_entities else set())
    wanted = {name for pipe in pipes for name in (pipe.name, pipe.source.component)}
    factories = {name: nlp.get_pipe_meta(name).factory for name in names}
    for place in reversed(range(len(names))):
        name = names[place]
        if name not in wanted and factories[name] in idle:
            continue
        before = names[:place]
        if factories[name] in _ALONE:
            before = [other for other in before if name in getattr(nlp.get_pipe(other), "listening_components", ())]
        wanted.update((name, *before))
    return [name for name in names if name in wanted]


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


def verdict_for(query: Query, drift: Mapping[str, Any]) -> str:
    """How far the texts are known to be like the fit data: what is said of the pipes whose labels a query asks for, the worst of it.

    drift (Mapping): What `Counting.drift` gave.
    """
    found = {drift[attr]["verdict"] for attr, _ in query.labels if attr in drift}
    return next((verdict for verdict in (OTHER_WEIGHTS, DIFFERENT, TOO_FEW) if verdict in found), LIKE)


class Compared:
    """Docs that are compared with what a pipe was fitted on."""

    def __init__(self, pipe: Calibrator, record: FitRecord):
        self.pipe, self._profile = pipe, record.profile
        self._reader = CarriedReader(pipe.attr, pipe.lookup.labels())
        self._held: list[Any] = []
        self._sums: DriftSums | None = None

    def see(self, doc: Doc) -> None:
        """The next one, of which nothing but its scores is held."""
        self._held.append(self._reader.prepare(doc))

    def add(self, documents: Sequence[int]) -> None:
        """Add up those that were seen since the last time. documents: Of each of them; none has parts here and elsewhere."""
        if not documents:
            return
        read, self._held = self._reader.read(self._held), []
        _, numbers = np.unique(documents, return_inverse=True)
        n_docs, own = int(numbers.max()) + 1, numbers.reshape(-1)[read.documents]
        names = np.array([*self.pipe.lookup.labels(), "", None], dtype=object)[:-1][read.columns].tolist()
        tokens = Labelled(own, n_docs, names, read.raw, read.calibrated).take(np.argsort(own, kind="stable"))
        spans = Labelled(np.zeros(len(read.span_raw), dtype=np.intp), n_docs, None, read.span_raw, read.span_calibrated)
        sums = self._profile.sums_of(tokens, spans)
        self._sums = sums if self._sums is None else self._sums + sums

    def drift(self, seed: int) -> dict[str, Any]:
        """Whether they are like the fit data, as `expect` tells it; {} of no Docs. seed (int): Of the draws that show what chance makes."""
        if self._sums is None:
            return {}
        told = told_of_drift(self._profile.judge(self._sums, seed))
        return {**told, "verdict": OTHER_WEIGHTS} if self.pipe.lookup.weights_changed() else told


@dataclass(eq=False)
class Answers:
    """What one query answered of the Docs so far, as arrays: a few bytes for each document, and for each unit that may satisfy it.

    documents (list[Ints]), raw, calibrated (list[Floats]): Of units, by part. numbers, found (array): Of each Doc. true (Counter): Document ->
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

    def answered(self, query: Query, sizes: Floats) -> Answered:
        """All of it; the arrays are given away. sizes (Floats): Tokens of each document."""
        given = ((self.documents, np.int32), (self.raw, np.float64), (self.calibrated, np.float64))
        documents, raw, calibrated = (np.concatenate([np.zeros(0, dtype=dtype), *parts]) for parts, dtype in given)
        for parts, _ in given:
            parts.clear()
        numbers = np.array(self.numbers, dtype=np.intp)
        found = np.bincount(numbers, np.array(self.found), minlength=len(sizes)).astype(np.intp)
        of_units = self._sizes(query, calibrated, sizes)
        for chances in (raw, calibrated):
            np.clip(chances, 0.0, 1.0, out=chances)
        units = Units(documents, raw, calibrated, found, of_units)
        return Answered(units.by_document() if query.unit == DOCUMENT else units, self.draws)

    def _sizes(self, query: Query, calibrated: Floats, sizes: Floats) -> Floats | None:
        """Tokens of each document, among which are such of a label that have no score of it; of entities as many fewer as these have tokens.

        RETURNS: None where that is not to be said: of patterns, documents, and entities that have scores as a whole.
        """
        if isinstance(query, LabelQuery) and query.unit == TOKEN:
            return sizes
        return sizes * (float(calibrated.sum()) / self.tokens) if query.unit == ENTITY and self.tokens else None


def answered(query: Query, answers: Sequence[tuple[int, Answer]], sizes: Floats) -> Answered:
    """What a query answered of Docs. answers: (number of the document, what was answered) of each. sizes (Floats): Tokens of each document."""
    held = Answers()
    held.add(answers)
    return held.answered(query, sizes)


class Counting:
    """Asks annotated Docs, some after the others; holds nothing of them.

    pipes (Sequence[Calibrator]): Whose scores are asked for. queries (Sequence[Query]). key (str | None), every (str | None): By what texts
    are counted, see `group_of`. path (Path): Where they are from. gold (bool): Whether the gold is counted too; the Docs are not compared then.
    scored (bool): Whether a pipe wrote scores so far. annotated (set[str]): Prefixes of those whose labels the gold has.
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
        asked: Collection[str] = () if gold else {attr for query in queries for attr, _ in query.labels}
        self._pipes, self._queries, self._key, self._every, self._path, self._gold = pipes, queries, key, every, path, gold
        self._compared = [
            Compared(pipe, record) for pipe in pipes if pipe.attr in asked and (record := pipe.learned.record) is not None
        ]
        self.scored, self.annotated = False, set[str]()
        self._numbers = DocumentNumbers()
        self._answers = [Answers() for _ in queries]
        self._groups: list[str] = []
        self._names: dict[str, str] = {}  # one string for each name, not one for each document
        self._sizes, self._texts = array("q"), array("q")

    def add(self, examples: Iterable[Example]) -> None:
        """The next ones. RAISES C396: the gold has not what a query takes as it stands. C397: see `group_of`."""
        view_of = lru_cache(maxsize=_PIPES)(doc_view)  # a Doc is asked by all queries before the next one comes
        answers: list[list[tuple[int, Answer]]] = [[] for _ in self._queries]
        numbers = []
        for example in examples:
            number = self._document(example)
            numbers.append(number)
            for compared in self._compared:
                compared.see(example.predicted)
            self.scored = self.scored or any(view_of(example.predicted, pipe.attr) is not None for pipe in self._pipes)
            for query, own, held in zip(self._queries, answers, self._answers, strict=True):
                own.append((number, query.answer(example.predicted, view_of)))
                if self._gold:
                    check_annotated(query, example.reference, self._path)
                    held.true[number] += query.true(example.reference)
            for pipe in self._pipes if self._gold else ():
                layer = get_annotation(pipe.fit_info.layer)
                if pipe.attr not in self.annotated and layer.gold_hashes(example.reference).any():
                    self.annotated.add(pipe.attr)
        for own, held in zip(answers, self._answers, strict=True):
            held.add(own)
        for compared in self._compared:
            compared.add(numbers)

    def _document(self, example: Example) -> int:
        """The number of its document, which is noted."""
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
        return group_of(value_of(doc, self._key), line, self._path, self._key, self._every)

    def drift(self, seed: int) -> dict[str, dict[str, Any]]:
        """Prefix -> what `Compared.drift` gives of the pipe."""
        return {one.pipe.attr: told for one in self._compared if (told := one.drift(seed))}

    def gathered(self) -> Gathered:
        """What was answered."""
        sizes = np.array(self._sizes, dtype=np.float64)
        counts = np.zeros((len(self._queries), len(sizes)), dtype=np.intp)
        for place, (query, held) in enumerate(zip(self._queries, self._answers, strict=True)):
            counts[place, list(held.true)] = list(held.true.values())
            if query.unit == DOCUMENT:
                counts[place] = np.minimum(counts[place], 1)
        answers = [held.answered(query, sizes) for query, held in zip(self._queries, self._answers, strict=True)]
        return Gathered(answers, self._groups, sizes, self._numbers.unit, counts, self._texts)


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


def group_of(given: Any, line: int, path: Path, key: str, every: str | None) -> str:
    """By what a text is counted. RAISES C397: there is nothing under the key, or no date where a period is asked for."""
    why, name = "", name_of(given)
    if name is None:
        why = "there is none" if given is None else f"{brief(repr(given))} is no name"
    elif every is not None:
        try:
            return period_of(given, every)
        except ValueError as error:
            why = f"{brief(repr(given))}: {brief(error, 160)}"
    if why:
        raise calib_error("C397", line=line, path=path, key=key, why=why)
    return str(name)
