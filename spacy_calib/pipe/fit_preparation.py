"""Preparation of a fit: Docs without entities set by other components, and the labels of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spacy.training import Example

from ..errors import calib_error
from .lookup import NO_SECOND_PASS
from ..sources.mapped import check_map_labels, with_map
from .calibrating import CalibratingPipe


def without_presets(calib: CalibratingPipe, examples: Iterable[Example]) -> Iterator[Example]:
    """Yield the examples unchanged. RAISES C034: a predicted Doc has entities that a second pass would take for its own."""
    pipe = calib.lookup.component_to_fit()
    for example in examples:
        if calib.source.holds_preset(pipe, example.predicted):
            why = "a component before it sets entities, and a second pass cannot tell them from its own"
            raise calib_error("C034", component=calib.source.component, why=f"{why}; {NO_SECOND_PASS}")
        yield example


def map_labels(calib: CalibratingPipe, table: dict[str, str] | None) -> None:
    """Map the labels of a new pipe's source to those of the data. RAISES C163: no valid map. C165: an unknown label."""
    if table:
        check_map_labels(calib.source, calib.lookup.component(), table)
    calib.source = with_map(calib.source, table)
