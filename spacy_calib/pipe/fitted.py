"""The fitted pipes of a pipeline."""

from __future__ import annotations

from spacy.language import Language

from ..errors import calib_error
from .component import Calibrator


def fitted_pipes(nlp: Language) -> list[Calibrator]:
    """RAISES C027: there is none."""
    pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    if not pipes:
        raise calib_error("C027", available=", ".join(nlp.component_names) or "no components")
    return pipes


def pipes_named(nlp: Language, attr: str | None) -> list[Calibrator]:
    """The fitted pipes with this prefix; all of them where none is named.

    RAISES C027: there is no fitted pipe. C068: none with this prefix.
    """
    fitted = fitted_pipes(nlp)
    pipes = [pipe for pipe in fitted if attr is None or pipe.attr == attr]
    if not pipes:
        raise calib_error("C068", attr=attr, available=", ".join(pipe.attr for pipe in fitted))
    return pipes
