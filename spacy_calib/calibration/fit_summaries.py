"""What a fit reports of itself, as it is saved: losses on held-out data, the comparison of candidates, an adaptation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..schema import Serializable, dict_of, list_of, maybe, number, plain, record, saved_field, text, whole
from .adaptation.adaptation import Line

_TRIAL = record({"candidate": text, "loss": number(), "difference": number(), "error": number(), "size": whole()})

# The saved form of what a choice compared, and of what it left out.
SELECTION = record(
    {
        "chosen": text, "pairs": whole(), "documents": whole(), "trials": list_of(_TRIAL),
        "left_out": list_of(record({"candidate": text, "why": text})),
    }
)  # fmt: skip

_SHARE = number(0.0, 1.0)

_JUDGED = record(
    {
        "expected": _SHARE,
        "log_loss": number(0.0),
        "ece": _SHARE,
        "gap": record({"value": number(), "low": maybe(number()), "high": maybe(number())}),
    }
)

# What `AdaptationFit.describe` gives.
ADAPTED = record(
    {
        "entries": whole(),
        "right": whole(),
        "leading": plain(Line),
        "other": plain(Line),
        "offsets": dict_of(number()),
        "before": maybe(_JUDGED),
        "after": maybe(_JUDGED),
    }
)

# A loss that rises by less than this share does not count as worse.
_MATERIAL = 0.01

# On fewer tokens a lower loss is not yet a gain.
_FEWEST_TOKENS = 100


@dataclass(frozen=True)
class HeldOut(Serializable):
    """How calibrated scores do beside raw ones on held-out parts of the fit data, by log loss per pair.

    raw, calibrated (float): Mean log loss. error (float): Standard error of the difference. tokens (int): With a pair.
    off_raw, off (float): ECE of raw and calibrated scores. excess (float): Mean raw score of likeliest labels less
        the share of them that is right.
    """

    raw: float = saved_field(number())
    calibrated: float = saved_field(number())
    error: float = saved_field(number())
    tokens: int = saved_field(whole())
    off_raw: float = saved_field(number())
    off: float = saved_field(number())
    excess: float = saved_field(number())

    @property
    def verdict(self) -> str:
        """One of "worse" (calibrated scores lose by over a standard error and a hundredth of the raw loss), "better"
        (they gain over two standard errors, on 100 tokens at least), "unclear", and "same" where nothing is changed.
        """
        difference = self.calibrated - self.raw
        if difference == 0.0 and self.error == 0.0:
            return "same"
        if difference > max(self.error, _MATERIAL * self.raw):
            return "worse"
        return "better" if difference < -2 * self.error and self.tokens >= _FEWEST_TOKENS else "unclear"

    def state(self) -> dict[str, Any]:
        """Plain data, with the verdict."""
        return {**super().state(), "verdict": self.verdict}
