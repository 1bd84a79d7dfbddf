"""Temperature scaling of all tags of a token: one number."""

from __future__ import annotations

from typing import Any

from .log_linear import LogLinearScaling


class TemperatureScaling(LogLinearScaling):
    """One factor for all log-probabilities (Guo et al. 2017, section 4.2)."""

    registered = "spacy-calib.TemperatureScaling.v1"
    short = "temperature"
    growth = 0
    biased = False

    def __init__(self) -> None:
        super().__init__()

    def settings(self) -> dict[str, Any]:
        return {}
