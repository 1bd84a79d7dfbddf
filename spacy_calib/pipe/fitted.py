"""The fitted pipes of a pipeline, and the units that they score."""

from __future__ import annotations

from collections.abc import Sequence

from spacy.language import Language

from ..doc.annotations import get_annotation
from ..errors import calib_error
from ..pairs.documents import DOCUMENT, several
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


def units_of(pipe: Calibrator) -> tuple[str, ...]:
    """What there are rows of for a calib pipe; the first is the one that is meant where nothing is said."""
    annotation = get_annotation(pipe.fit_info.layer)
    if annotation.unit == DOCUMENT:
        return ("document",)
    of_tokens = ("token", "sentence", "document")
    finds_entities = bool(pipe.lookup.span_labels()) and annotation.span_words[0] != "sentence"
    return ("entity", *of_tokens) if finds_entities else of_tokens


def check_unit(nlp: Language, pipes: Sequence[Calibrator], unit: str) -> None:
    """RAISES C446: none of the pipes scores such units. C447: sentences are asked for, and nothing finds them."""
    known = [units_of(pipe) for pipe in pipes]
    has_sentences = bool(sentence_finders(nlp))
    if not any(unit in units for units in known):
        wanted = list(dict.fromkeys(one for units in known for one in units if one != "sentence" or has_sentences))
        said = [f"{several(units[0])} ({pipe.attr})" for pipe, units in zip(pipes, known, strict=True)]
        raise calib_error("C446", unit=unit, known=", ".join(said), wanted=" or ".join(wanted))
    if unit == "sentence" and not has_sentences:
        raise calib_error("C447")


def sentence_finders(nlp: Language) -> list[str]:
    """The pipes that find sentences."""
    return [name for name in nlp.pipe_names if {"doc.sents", "token.is_sent_start"} & set(nlp.get_pipe_meta(name).assigns)]
