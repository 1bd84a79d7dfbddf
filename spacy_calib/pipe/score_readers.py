"""Pipes that read the scores of a calib pipe, of any package: the core runs, drops and shows them, and imports none of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span
    from spacy.training import Example

    from .component import Calibrator


class ScoreReader(Protocol):
    """A pipe that reads scores. It needs `reads_scores_of`; the other attributes are used where it has them."""

    fitted: bool
    # What its forecasts are compared with: a name of raw, and of calibrated scores.
    rivals: tuple[str, str]

    def reads_scores_of(self, attr: str) -> bool:
        """Whether it reads the scores of the calib pipe with this prefix."""

    def event_units(self, doc: Doc) -> Sequence[Span]:
        """The spans of a Doc to which it gives a `Span._.<attr>_right`; `view` marks them."""

    def event_info(self) -> dict[str, Any] | None:
        """What its fit learned, for `fit` and `info`: "event" (when a unit is right), "called" (a name of one unit, and of several),
        "units", "right", "product" (squared loss of the rival), "trials" (each with "name" and "loss") and "chosen".
        """

    def event_table(self, examples: Sequence[Example], n_bins: int, seed: int) -> dict[str, Any]:
        """How good its forecasts are, for `evaluate`: "name", "event", "called", "units", "right" (their share), "rows" (each with
        "name", "loss", "calibration", "sharpness", "smce", "floor", "floor95"), and where it has them "rivals" and "change".
        """

    def event_means(self, examples: Sequence[Example], calib: Calibrator) -> dict[str, Any]:
        """What it makes of adapted scores, for `adapt`: "event", "called", "units", and the means "expected" and "right"."""


def score_readers(nlp: Language, attr: str, *, fitted_only: bool = True) -> dict[str, ScoreReader]:
    """Name -> each pipe that reads the scores with this prefix. fitted (bool): Leave out those that are not fitted."""
    pipes: list[tuple[str, Any]] = nlp.components
    readers = {name: pipe for name, pipe in pipes if hasattr(pipe, "reads_scores_of") and pipe.reads_scores_of(attr)}
    return {name: pipe for name, pipe in readers.items() if not fitted_only or getattr(pipe, "fitted", True)}


def drop_readers(nlp: Language, attr: str) -> list[str]:
    """Take out the pipes that read the scores with this prefix, which are others now. RETURNS (list[str]): Their names."""
    names = list(score_readers(nlp, attr, fitted_only=False))
    for name in names:
        nlp.remove_pipe(name)
    return names


def info_of(reader: ScoreReader) -> dict[str, Any] | None:
    """What the fit of a reader learned; None where it does not say."""
    info: dict[str, Any] | None = reader.event_info() if hasattr(reader, "event_info") else None
    return info
