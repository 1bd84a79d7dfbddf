"""Makes lists of the docstrings' lines in spaCy's house form, for the pages that mkdocstrings builds of them.

A line `name (type): meaning`, `name: meaning`, `RETURNS (type): meaning` or `RAISES C001: meaning` begins an entry; lines indented below it belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import dedent
from typing import Any

import griffe

# An indented example: from a blank line to the next one.
_EXAMPLE = re.compile(r"(?<=\n\n)((?: +>>> .*\n)(?: +\S.*\n)*)")
_ENTRY = re.compile(r"^(RETURNS|RAISES|YIELDS)\b ?([^:]*): |^(\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*)((?: \([^)]*\))?): ")


def as_markdown(docstring: str, names: Iterable[str] = ()) -> str:
    """The docstring with an entry of a list for each argument, result and error.

    names: Of arguments or attributes: where one stands behind a full stop within a line, an entry of its own begins.
    """
    known = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    within = re.compile(rf"(?<=[.)]) ((?:\*{{0,2}}(?:{known})(?:, )?)+(?: \([^)]*\))?: )") if known else None
    out: list[str] = []
    inside = False
    for line in _EXAMPLE.sub(_fence, docstring + "\n").splitlines():
        found = _ENTRY.match(line)
        if found and within:
            first, *more = within.sub(r"\n\1", line).split("\n")
        else:
            first, more = line, []
        if found and not inside and out and out[-1]:
            out.append("")
        inside = bool(found) or inside and bool(line.strip())
        out += [_entry(one) for one in (first, *more)] if found else [f"    {line.strip()}" if inside else line]
    return "\n".join(out)


def _fence(example: re.Match[str]) -> str:
    return f"```pycon\n{dedent(example[0])}```\n"


def _entry(line: str) -> str:
    found = _ENTRY.match(line)
    if not found:
        return line
    word, of, names, kind = found.groups()
    head = f"**{word.capitalize()}** {of}".rstrip() if word else f"`{names}`{kind}"
    return f"- {head}: {line[found.end() :]}"


class SpacyDocstrings(griffe.Extension):
    """Rewrites every docstring of the package when it has been read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            names = [one.name.lstrip("*") for one in obj.parameters] if isinstance(obj, griffe.Function) else list(obj.members)
            obj.docstring.value = as_markdown(obj.docstring.value, names)
