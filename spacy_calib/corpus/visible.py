"""Text for a terminal, a page or an XML file: characters that steer these, or that they may not hold, are escaped."""

from __future__ import annotations

import os
import re
from pathlib import Path

# Control characters, marks that turn the direction of writing, separators of lines and paragraphs, halves of a
# surrogate pair, and the two code points in UTF-8 that are no characters.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def visible(text: object, keep: str = "", json: bool = False) -> str:
    r"""A text with its steering characters escaped as in Python (\x1b), or as in JSON (\u001b) if `json` says so.

    keep (str): Characters that stay as they are.
    """
    escape = _in_json if json else _in_python
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else escape(found[0]), str(text))


def _in_python(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _in_json(character: str) -> str:
    return f"\\u{ord(character):04x}"


def shown_path(path: Path) -> str:
    r"""A path as text in UTF-8; bytes of its name that are no UTF-8 are \xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
