"""Labels that stand in the settings of a source."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import calib_error


def distinct_labels(labels: Sequence[str], wanted: str) -> tuple[str, ...]:
    """The labels of a setting. wanted (str): What they must be, for the message.

    RAISES C001: none, or not distinct. C111: one that no config can hold.
    """
    if not labels or len(set(labels)) != len(labels):
        raise calib_error("C001", name="labels", wanted=wanted, given=list(labels))
    for label in labels:
        if "${" in label:
            raise calib_error("C111", label=label)
    return tuple(labels)


def differ_in_dollars(saved: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether the two differ, and in nothing but numbers of dollar signs: each time that spaCy writes a config it doubles them, and it
    never halves them again.
    """
    return tuple(saved) != tuple(labels) and [_single(label) for label in saved] == [_single(label) for label in labels]


def _single(label: str) -> str:
    """Every run of dollar signs as one."""
    return re.sub(r"\$+", "$", label)
