"""Commands of `spacy calib` as a user types them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any


def shell_line(command: str, *arguments: object, options: Mapping[str, Any]) -> str:
    """Return a command that can be pasted into a shell.

    options (Mapping): Flag -> value; True is a flag without a value, and None, False and "" are left out.

    EXAMPLE:
        >>> shell_line("evaluate", "./my model", "GOLD", options={"--map": "PERSON=PER", "--all-types": False})
        "python -m spacy calib evaluate './my model' GOLD --map PERSON=PER"
    """
    words = ["python", "-m", "spacy", "calib", command, *map(str, arguments)]
    for flag, value in options.items():
        if value not in (None, False, ""):
            words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)
