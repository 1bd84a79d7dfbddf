"""The messages of the core, each with a code, and how plug-ins build errors of theirs.

An error is one sentence: the thing, what was given, what is expected, what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from .messages import MESSAGES
from .messages import WARNINGS as WARNINGS


class CalibError(ValueError):
    """A fault that the user can mend. `code` names the message, `str()` is the sentence that the CLI prints; `pipe` is the name of the
    pipe whose saved state cannot be read, "" for any other fault.
    """

    __module__ = "spacy_calib"  # pickles outlive a move of the file

    def __init__(self, code: str, message: str, pipe: str = ""):
        super().__init__(f"[{code}] {message}")
        self.code = code
        self.message = message
        self.pipe = pipe

    def __reduce__(self):
        return CalibError, (self.code, self.message, self.pipe)


# The saved state of a pipe cannot be read: such a pipe can only be fitted anew.
UNREADABLE = ("C010", "C011", "C012")

# Values of sentences that are what somebody gave, of any length: these are cut, paths among them and lists of what is allowed are not.
_GIVEN = {"given", "query", "text"}


def brief(value: object, most: int = 40) -> str:
    """What was given, as a sentence tells it: on one line, of so many characters at most."""
    text = " ".join(str(value).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def error_builder(messages: Mapping[str, str]) -> Callable[..., CalibError]:
    """Return the function that builds errors of these messages, code -> sentence, and of those of the core.

    A plug-in has its own: `calib_error = error_builder(MESSAGES)`.
    """

    def calib_error(code: str, **values: object) -> CalibError:
        """Build the error with this code. values: What the sentence names; what was given is cut to 40 characters. `state`: See `advise`."""
        pipe = str(values["name"]) if code in UNREADABLE else ""
        for key in _GIVEN & values.keys():
            if not isinstance(values[key], PurePath) and len(str(values[key])) > 40:
                values[key] = brief(values[key])
        sentence, state = messages[code] if code in messages else MESSAGES[code], str(values.pop("state", ""))
        if "{advice}" in sentence:
            from .advice import advise  # scoring does not need it

            values["advice"] = advise(code, state, **values)
        return CalibError(code, sentence.format(**values), pipe)

    return calib_error


calib_error = error_builder(MESSAGES)
