"""The attribute `Doc._.coref`: light, since every `Language()` makes it known."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from spacy.tokens import Doc

from ..errors import CalibError, calib_error

if TYPE_CHECKING:
    from .view import DocCoref

ATTRIBUTE = "coref"


def coref_of(doc: Doc) -> DocCoref | None:
    """Doc._.coref, see `view.coref_view`."""
    from .view import coref_view

    return coref_view(doc)


def register_coref(name: str) -> None:
    """Make Doc._.coref known. name (str): The component's, for the message. RAISES C358: another package owns it."""
    if not Doc.has_extension(ATTRIBUTE):
        Doc.set_extension(ATTRIBUTE, getter=coref_of)
    elif Doc.get_extension(ATTRIBUTE)[2] is not coref_of:
        raise calib_error("C358", name=name)


def register_quietly() -> None:
    """`register_coref`, unless somebody else owns the name: importing this package must not break spaCy."""
    with contextlib.suppress(CalibError):
        register_coref("calib_coref")
