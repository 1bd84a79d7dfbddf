"""What has to be there before a calib pipe is fitted: Docs without entities of others, and the labels of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spacy.training import Example

from ..errors import calib_error
from ..errors.advice import SECOND_PASS, advise
from ..sources.mapped import check_map_labels, with_map
from .calibrating import CalibratingPipe


def without_presets(calib: CalibratingPipe, examples: Iterable[Example]) -> Iterator[Example]:
    """The examples, each one looked at. RAISES C034: a second pass would be made where a component before the recognizer sets entities."""
    pipe = calib.lookup.to_fit()
    for example in examples:
        if calib.source.holds_preset(pipe, example.predicted):
            why = "a component before it sets entities, and a second pass cannot tell them from its own"
            advice = advise(SECOND_PASS, calib.learned.origin)
            raise calib_error("C034", component=calib.source.component, why="; ".join(filter(None, (why, advice))))
        yield example


def map_labels(calib: CalibratingPipe, table: dict[str, str] | None) -> None:
    """Map the labels of a new pipe's source to those of the data. RAISES C163: impossible. C165: an unknown label."""
    if table:
        check_map_labels(calib.source, calib.lookup.component(), table)
    calib.source = with_map(calib.source, table)
