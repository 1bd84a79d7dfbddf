"""The factory of event pipes."""

from dataclasses import dataclass
from typing import Any

from ... import registry as _registry  # noqa: F401
from ...pipe.settings import block, component_factory


@dataclass(kw_only=True)
class EventSettings:
    """See EventPipe."""

    attr: str = "calib"
    event: Any = block("@calib_events", "spacy-calib.Sentence.v1")
    forecaster: Any | None = None


_RIGHT = {"assigns": ["span._.calib_right"]}


make_calib_event = component_factory("calib_event", ".plugins.events.component:EventPipe", EventSettings, **_RIGHT)
