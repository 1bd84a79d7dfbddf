"""The sentences of this package by their codes: tests pin codes and values; wordings only where a table is about them (`cli/test_beginner.py`)."""

import contextlib
import re
import string
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import spacy_calib
from spacy_calib.errors import CalibError

PACKAGE = Path(spacy_calib.__file__).parent


def load_messages(name: str) -> ModuleType:
    """Import a module of messages; a plug-in whose extra is not installed has imported its own before it says so."""
    with contextlib.suppress(CalibError):
        return import_module(name)
    return sys.modules[name]


# Modules with messages: those of the core, and of each plug-in that has its own.
HOLDERS = {
    path.parent.relative_to(PACKAGE).as_posix(): load_messages(
        ".".join(["spacy_calib", *path.relative_to(PACKAGE).with_suffix("").parts])
    )
    for path in sorted(PACKAGE.rglob("messages.py"))
}
MESSAGES = {code: sentence for holder in HOLDERS.values() for code, sentence in holder.MESSAGES.items()}
WARNINGS = {code: sentence for holder in HOLDERS.values() for code, sentence in getattr(holder, "WARNINGS", {}).items()}


def says(code: str, **values: object) -> re.Pattern[str]:
    """The pattern of a sentence with these values, and any for its other fields."""
    pattern = ""
    for text, field, spec, conversion in string.Formatter().parse({**MESSAGES, **WARNINGS}[code]):
        pattern += re.escape(text)
        if field in values:
            form = f"{{0{f'!{conversion}' if conversion else ''}:{spec}}}"
            pattern += re.escape(form.format(values.pop(field)))
        elif field is not None:
            pattern += ".*?"
    assert not values, f"{code} has no field {', '.join(values)}"
    return re.compile(pattern, re.DOTALL)
