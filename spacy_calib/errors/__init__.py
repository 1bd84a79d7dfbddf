"""Errors with codes: `CalibError`, and functions that build it from the messages of the core and of a plug-in.

An error is one sentence: the thing, what was given, what is expected, what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from .messages import MESSAGES
from .messages import WARNINGS as WARNINGS


class CalibError(ValueError):
    """An error that the user can correct.

    code (str): Code of the message, "C056". message (str): The sentence that the command line prints; `str(error)` begins with
    the code. pipe (str): Name of the pipe whose saved state cannot be read; "" for any other error.
    """

    __module__ = "spacy_calib"  # pickles outlive a move of the file

    def __init__(self, code: str, message: str, pipe: str = ""):
        super().__init__(f"[{code}] {message}")
        self.code, self.message, self.pipe = code, message, pipe

    def __reduce__(self):
        return CalibError, (self.code, self.message, self.pipe)


# Codes of a saved state that cannot be read. Only a new fit can replace such a pipe.
UNREADABLE = ("C010", "C011", "C012")
# Fields of messages that quote user input of any length. They are cut, unless they are paths; lists of allowed values are not.
_QUOTED_FIELDS = {"given", "query", "text"}


def brief(value: object, max_length: int = 40) -> str:
    """Return a value as text on one line, cut to at most `max_length` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."


def error_builder(messages: Mapping[str, str]) -> Callable[..., CalibError]:
    """Return the function that builds errors from these messages (code -> sentence) and from those of the core.

    Each plug-in has its own: `calib_error = error_builder(MESSAGES)`.
    """

    def calib_error(code: str, **values: object) -> CalibError:
        """Return the error with this code. values: The fields of its sentence; long user input is cut to 40 characters."""
        pipe = str(values["name"]) if code in UNREADABLE else ""  # sentences with these codes have the pipe's name as a field
        for key in _QUOTED_FIELDS & values.keys():
            if not isinstance(values[key], PurePath) and len(str(values[key])) > 40:
                values[key] = brief(values[key])
        sentence = messages[code] if code in messages else MESSAGES[code]
        return CalibError(code, sentence.format(**values), pipe)

    return calib_error


calib_error = error_builder(MESSAGES)
