"""The factory `calib_event`."""

from dataclasses import dataclass
from typing import Any

from ... import registry as _registry  # noqa: F401
from ...pipe.settings import block, component_factory


@dataclass(kw_only=True)
class EventSettings:
    """Config of an event pipe; the settings are arguments of `EventPipe`."""

    attr: str = "calib"
    event: Any = block("@calib_events", "spacy-calib.Sentence.v1")
    forecaster: Any | None = None


_META = {"assigns": ["span._.calib_right"]}


make_calib_event = component_factory("calib_event", ".plugins.events.component:EventPipe", EventSettings, **_META)
