"""The saved form of what a fit keeps of its documents: checked whole when a pipeline is loaded, built when a command asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..schema import Form, digests, floats, keyed, lengths, maybe, number, record, several, text, whole

# Widths on the grid of `effects.WIDTHS`.
N_WIDTHS = 9

EFFECTS = {
    "between": number(0.0), "shift": number(), "shared": number(0.0), "missed": number(0.0), "uneven": number(0.0),
    "unsure": number(0.0), "widths": several(number(0.0, 1.0)), "sources": whole(),
}  # fmt: skip
RESIDUALS = {
    "docs": whole(1), "units": number(1.0), "squares": number(1.0), "residual": floats(), "independent": floats(0.0),
    "moment": floats(ndim=2), "neighbours": floats(ndim=2),
}  # fmt: skip
PROFILE = {
    "edges": floats(0.0, 1.0, rising="rises"), "labels": several(text), "scores": floats(0.0, ndim=2),
    "label_counts": floats(0.0, ndim=2), "calibrated": floats(0.0), "span_edges": floats(0.0, 1.0, rising="rises"),
    "spans": floats(0.0, ndim=2), "stretch": whole(),
}  # fmt: skip


def effects_agree(fields: Mapping[str, Any]) -> str:
    """Return what is wrong with the effects of a label together, or ""."""
    return "" if len(fields["widths"]) in (0, N_WIDTHS) else f"{N_WIDTHS} widths, or none"


def residuals_agree(fields: Mapping[str, Any], k: int) -> str:
    """Return what is wrong with residuals of k kinds of events together, or ""."""
    return lengths({"residual": (k,), "independent": (k,), "moment": (k, k), "neighbours": (k, k)}, fields)


def profile_agrees(fields: Mapping[str, Any]) -> str:
    """Return what is wrong with the tables of a profile together, or ""."""
    n, bins = len(fields["calibrated"]), len(fields["span_edges"])
    sizes = {
        "scores": (n, len(fields["edges"]) + 1),
        "label_counts": (n, len(fields["labels"]) + 1),
        "spans": (n, bins + 1 if bins else 0),
    }
    wrong = lengths(sizes, fields)
    if not wrong and (not n or fields["scores"].sum(axis=1).min() <= 0):
        wrong = "a document has no tokens"
    return wrong


def with_small_counts(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a profile as they are saved: counts in half as many bytes."""
    return fields | {name: fields[name].astype(np.float32) for name in ("scores", "label_counts", "spans")}


def profile_state(value: Any, where: str) -> dict[str, Any]:
    """The state of a profile, checked."""
    return with_small_counts(record(PROFILE, profile_agrees)(value, where))


def residuals_of(k: int) -> Form:
    """Return the form of residuals with k kinds of events."""
    return record(RESIDUALS, lambda fields: residuals_agree(fields, k))


ENTITIES = {"per_wrong": number(0.0), "per_outside": number(0.0), "residuals": residuals_of(2)}
FIT_RECORD = record(
    {
        "tokens": residuals_of(1),
        "accuracy": number(0.0, 1.0),
        "entities": maybe(record(ENTITIES)),
        "profile": profile_state,
        "effects": keyed(record(EFFECTS, effects_agree)),
        "between": number(0.0),
    }
)
SEEN_TEXTS = record({"digests": digests, "salt": text})
