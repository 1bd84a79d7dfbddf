"""Which pipes score, what is a row, and the texts through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...errors import calib_error
from ...pairs.documents import DOCUMENT
from ..shared.workers import watched

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.component import Calibrator
    from .formats import ScoredDoc
    from .inputs import Row


def units_of(pipe: Calibrator) -> tuple[str, ...]:
    """What there are rows of for a calib pipe; the first is the one that is meant where nothing is said."""
    from ...doc.annotations import get_annotation

    annotation = get_annotation(pipe.fit_info.layer)
    if annotation.unit == DOCUMENT:
        return ("document",)
    of_tokens = ("token", "sentence", "document")
    finds_entities = bool(pipe.lookup.span_labels()) and annotation.span_words[0] != "sentence"
    return ("entity", *of_tokens) if finds_entities else of_tokens


def choose_unit(nlp: Language, pipes: Sequence[Calibrator], unit: str | None) -> str:
    """What there is a row of: as asked, else entities where all pipes find some, documents where all score categories, and tokens.

    RAISES C446: no pipe scores what was asked for. C447: sentences are asked for, and nothing finds them.
    """
    known = [units_of(pipe) for pipe in pipes]
    if unit is None:
        firsts = {units[0] for units in known}
        return firsts.pop() if len(firsts) == 1 else "token" if any("token" in units for units in known) else "document"
    if not any(unit in units for units in known):
        wanted = list(dict.fromkeys(one for units in known for one in units))
        said = [f"{plural} ({pipe.attr})" for pipe, units in zip(pipes, known, strict=True) for plural in [_plural(units[0])]]
        raise calib_error("C446", unit=unit, known=", ".join(said), wanted=" or ".join(wanted))
    if unit == "sentence" and not _setters(nlp):
        raise calib_error("C447")
    return unit


def _plural(unit: str) -> str:
    return "entities" if unit == "entity" else f"{unit}s"


def _setters(nlp: Language) -> list[str]:
    """The pipes that find sentences."""
    return [name for name in nlp.pipe_names if {"doc.sents", "token.is_sent_start"} & set(nlp.get_pipe_meta(name).assigns)]


def pipes_needed(nlp: Language, pipes: Sequence[Calibrator], unit: str, whole: bool) -> list[str]:
    """The names of the pipes that have to run: up to the last that writes what a row holds. whole (bool): Docs are kept, so that all of them run."""
    from ...pipe.event import EventPipe

    order = nlp.pipe_names
    if whole:
        return order
    attrs = {pipe.attr for pipe in pipes}
    events = [name for name, pipe in nlp.pipeline if isinstance(pipe, EventPipe) and pipe.attr in attrs]
    setters = _setters(nlp)[:1] if unit == "sentence" else []
    return order[: max(order.index(name) for name in [*(pipe.name for pipe in pipes), *events, *setters]) + 1]


def scored(nlp: Language, rows: Iterable[Row], batch_size: int | None, n_process: int) -> Iterator[ScoredDoc]:
    """The texts through the pipeline, rows without text left out: what is wanted of a Doc has to be taken from it before the next one is asked for."""
    from ...doc.zones import pipe_in_zones

    # What goes with a text is sent to the worker and back: not the text once more.
    items = ((row.text, row._replace(text=None)) for row in rows if row.text is not None)
    with watched(n_process):
        yield from pipe_in_zones(nlp, items, batch_size=batch_size, n_process=n_process)
