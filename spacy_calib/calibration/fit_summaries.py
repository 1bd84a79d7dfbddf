"""Saved summaries of a fit: its cross-validated losses, the comparison of candidate methods, and an adaptation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..schema import Serializable, dict_of, list_of, maybe, number, plain, record, saved_field, text, whole
from .adaptation.adaptation import Line

_TRIAL = record({"candidate": text, "loss": number(), "difference": number(), "error": number(), "size": whole()})

# The saved form of a choice: the candidates that were compared, and those left out.
SELECTION = record(
    {
        "chosen": text, "pairs": whole(), "documents": whole(), "trials": list_of(_TRIAL),
        "left_out": list_of(record({"candidate": text, "why": text})),
    }
)  # fmt: skip

_SHARE = number(0.0, 1.0)
_GAP = record({"value": number(), "low": maybe(number()), "high": maybe(number())})
_EVALUATION = maybe(record({"expected": _SHARE, "log_loss": number(0.0), "ece": _SHARE, "gap": _GAP}))

# The saved form of `AdaptationFit.describe`.
ADAPTED = record(
    {
        "entries": whole(), "right": whole(), "leading": plain(Line), "other": plain(Line), "offsets": dict_of(number()),
        "before": _EVALUATION, "after": _EVALUATION,
    }
)  # fmt: skip

_MATERIAL = 0.01  # a loss that rises by less than this share does not count as worse
_FEWEST_TOKENS = 100  # on fewer tokens a lower loss does not count as better


@dataclass(frozen=True)
class HeldOut(Serializable):
    """Comparison of raw scores with out-of-fold calibrated scores on the data of a fit.

    raw, calibrated (float): Mean log loss of both per pair. error (float): Standard error of their difference. tokens (int):
        Number of tokens with a pair. off_raw, off (float): ECE of raw and of calibrated scores. excess (float): Mean raw score
        of the top labels less their accuracy.
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
        """How calibrated scores compare with raw ones: "worse", "better", "unclear", or "same" (neither difference nor error).

        "worse": the loss rises by more than a standard error and by more than a hundredth of the raw loss. "better": the loss
        falls by more than two standard errors, on at least 100 tokens.
        """
        difference = self.calibrated - self.raw
        if difference == 0.0 and self.error == 0.0:
            return "same"
        if difference > max(self.error, _MATERIAL * self.raw):
            return "worse"
        return "better" if difference < -2 * self.error and self.tokens >= _FEWEST_TOKENS else "unclear"

    def state(self) -> dict[str, Any]:
        """Return the fields and the verdict as plain data."""
        return {**super().state(), "verdict": self.verdict}
