"""Text that a terminal, a page or an XML file can hold: characters that steer it, or that it may not hold, are shown as escapes."""

from __future__ import annotations

import os
import re
from pathlib import Path

# Control characters; marks that turn the direction of writing; separators of lines and paragraphs; halves of a surrogate pair; and the two
# code points that are no characters but that UTF-8 can hold.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def visible(text: object, keep: str = "", json: bool = False) -> str:
    r"""The text with its steering characters in Python's notation, \x1b for the escape, or in that of JSON's strings, \u001b.

    keep (str): Characters that stay as they are. json (bool): The notation is JSON's.
    """
    escape = _in_json if json else _in_python
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else escape(found[0]), str(text))


def _in_python(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _in_json(character: str) -> str:
    return f"\\u{ord(character):04x}"


def shown_path(path: Path) -> str:
    r"""A path as text that can be written as UTF-8: bytes of the name that are none are \xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
