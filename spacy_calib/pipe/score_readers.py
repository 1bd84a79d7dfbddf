"""Pipes of any package that read the scores of a calib pipe: the core runs, removes and shows them without importing any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span
    from spacy.training import Example

    from .component import Calibrator


class ScoreReader(Protocol):
    """A pipe that reads scores. It must have `reads_scores_of`; the other attributes are optional."""

    fitted: bool
    # Names of the raw and the calibrated scores that its forecasts are compared with.
    rivals: tuple[str, str]

    def reads_scores_of(self, attr: str) -> bool:
        """Return whether it reads the scores of the calib pipe with this prefix."""

    def event_units(self, doc: Doc) -> Sequence[Span]:
        """Return the spans of a Doc that get a `Span._.<attr>_right`; `view` marks them."""

    def event_info(self) -> dict[str, Any] | None:
        """Summarize its fit for `fit` and `info`: "event" (when a unit is right), "called" (singular and plural of its units),
        "units", "right", "product" (squared loss of the rival), "trials" (each with "name" and "loss") and "chosen".
        """

    def event_table(self, examples: Sequence[Example], n_bins: int, seed: int) -> dict[str, Any]:
        """Evaluate its forecasts, for `evaluate`: "name", "event", "called", "units", "right" (their share), "rows" (each with
        "name", "loss", "calibration", "sharpness", "smce", "floor", "floor95"), and optionally "rivals" and "change".
        """

    def event_means(self, examples: Sequence[Example], calib: Calibrator) -> dict[str, Any]:
        """Summarize its forecasts from adapted scores, for `adapt`: "event", "called", "units", means "expected", "right"."""


def score_readers(nlp: Language, attr: str, *, fitted_only: bool = True) -> dict[str, ScoreReader]:
    """Return name -> pipe of the pipes that read the scores with this prefix. fitted_only (bool): Leave out unfitted ones."""
    pipes: list[tuple[str, Any]] = nlp.components
    readers = {name: pipe for name, pipe in pipes if hasattr(pipe, "reads_scores_of") and pipe.reads_scores_of(attr)}
    return {name: pipe for name, pipe in readers.items() if not fitted_only or getattr(pipe, "fitted", True)}


def drop_readers(nlp: Language, attr: str) -> list[str]:
    """Remove the pipes that read the scores with this prefix, which have changed. RETURNS (list[str]): Their names."""
    names = list(score_readers(nlp, attr, fitted_only=False))
    for name in names:
        nlp.remove_pipe(name)
    return names


def info_of(reader: ScoreReader) -> dict[str, Any] | None:
    """Return the summary of a reader's fit; None if it has none."""
    info: dict[str, Any] | None = reader.event_info() if hasattr(reader, "event_info") else None
    return info
