"""Which pipes score, what is a row, and the texts through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..shared.workers import watched

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.component import Calibrator
    from .formats import ScoredDoc
    from .inputs import Row


def choose_unit(nlp: Language, pipes: Sequence[Calibrator], unit: str | None) -> str:
    """What there is a row of: as asked, else entities where all pipes find some, documents where all score categories, and tokens.

    RAISES C446, C447: see `check_unit`.
    """
    from ...pipe.units import check_unit, units_of

    if unit is None:
        known = [units_of(pipe) for pipe in pipes]
        firsts = {units[0] for units in known}
        return firsts.pop() if len(firsts) == 1 else "token" if any("token" in units for units in known) else "document"
    check_unit(nlp, pipes, unit)
    return unit


def pipes_needed(nlp: Language, pipes: Sequence[Calibrator], unit: str, whole: bool) -> list[str]:
    """The names of the pipes that have to run: up to the last that writes what a row holds. whole (bool): Docs are kept, so that all of them run."""
    from ...pipe.event import EventPipe
    from ...pipe.units import sentence_finders

    order = nlp.pipe_names
    if whole:
        return order
    attrs = {pipe.attr for pipe in pipes}
    events = [name for name, pipe in nlp.pipeline if isinstance(pipe, EventPipe) and pipe.attr in attrs]
    setters = sentence_finders(nlp)[:1] if unit == "sentence" else []
    return order[: max(order.index(name) for name in [*(pipe.name for pipe in pipes), *events, *setters]) + 1]


def scored(nlp: Language, rows: Iterable[Row], batch_size: int | None, n_process: int) -> Iterator[ScoredDoc]:
    """The texts through the pipeline, rows without text left out: what is wanted of a Doc has to be taken from it before the next one is asked for."""
    from ...doc.zones import pipe_in_zones

    # What goes with a text is sent to the worker and back: not the text once more.
    items = ((row.text, row._replace(text=None)) for row in rows if row.text is not None)
    with watched(n_process):
        yield from pipe_in_zones(nlp, items, batch_size=batch_size, n_process=n_process)
