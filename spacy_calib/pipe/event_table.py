"""What an event pipe says of units with gold, counted: what `statistics.further_tables.event_table` makes its table of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.training import Example

from ..statistics.blocks import Digests
from ..statistics.further_tables import EventCounts
from .event import EventPipe


def event_of(pipe: EventPipe) -> dict[str, Any]:
    """What is to be known of the event, of the form `statistics.further_tables.EVENT`."""
    event = pipe.event
    return {"name": pipe.name, "event": event.what, "called": list(event.called), "rivals": list(event.rivals)}


def count_event(pipe: EventPipe, examples: Sequence[Example], digests: Digests | None = None) -> EventCounts:
    """The forecasts beside the product of the tokens' scores.

    examples: Their predicted Docs have been through the pipeline. digests (Digests | None): Of each document, see `count_judged`.
    """
    found, _ = pipe.gather(examples)
    units = found.units
    raw, product, forecast = (np.clip(one, 0.0, 1.0) for one in (units.raw, units.own, pipe.learned.forecast(units)))
    return EventCounts.of(raw, product, forecast, found.hits, found.documents if digests is None else digests[found.documents])
