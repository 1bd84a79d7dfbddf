"""Reads and runs the pages of docs/ and README.md: their Python, their files, their commands; and compares what they say is printed.

A comment before a block says what a block cannot say itself:
`<!-- prints -->` the text is printed by the blocks before it (words as they are, numbers nearly; `...` stands for what is left out).
`<!-- real: COMMAND -->` the text is of real data, printed by this command; after `header:` a line that the commands before it print on made-up data, too.
`<!-- not run: REASON -->` the block is not run. `<!-- fails: SENTENCE -->` its command ends with code 1 and this sentence.
`<!-- needs extra: MODULE -->` the block is run where the module is installed.
At the top of a page `<!-- needs: NAMES -->` names what a reader has already, `<!-- continues: PAGE -->` the page whose folder it goes on in.
A Python block with a title is a file; so are blocks in other languages that have one.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spacy.cli._util import app
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# What make_site makes of the code, or a script of data, holds no blocks that were written by hand.
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in DOCS.rglob("*.md") if page.name not in ("quality.md", "shift.md")),
]
_BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n\n?)?```(?P<language>\w+)(?P<options>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PROGRAMS = ("pip install ", "make ", "cd ", "git ")


@dataclass(frozen=True)
class Block:
    """A fenced block. note (str): The comment before it. line (int): Where it begins in its page."""

    page: Path
    language: str
    title: str
    note: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def noted(self, word: str) -> str | None:
        """What the comment says after this word; None where it does not begin so."""
        if self.note == word:
            return ""
        return self.note[len(word) + 2 :] if self.note.startswith(f"{word}: ") else None


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf8")
    found = []
    for match in _BLOCK.finditer(text):
        title = re.search(r'title="([^"]+)"', match["options"])
        line = text[: match.start("language")].count("\n") + 1
        found.append(Block(page, match["language"], title[1] if title else "", match["note"] or "", match["text"], line))
    return found


def at_the_top(page: Path, word: str) -> list[str]:
    """The words of a comment of the page, such as `needs`."""
    found = re.search(rf"^<!-- {word}: (.+) -->$", page.read_text(encoding="utf8"), flags=re.M)
    return found[1].split() if found else []


@dataclass
class Run:
    """One reader's session: the names that Python knows, and all that was printed since the last block that was run."""

    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    def page(self, page: Path) -> None:
        """All blocks of a page, in order. RAISES AssertionError: a block fails, or prints something else than the page says."""
        for previous in at_the_top(page, "continues"):
            self.page(page.parent / previous)
        for block in blocks_of(page):
            self.block(block)

    def block(self, block: Block) -> None:
        extra = block.noted("needs extra")
        if block.noted("not run") is not None or extra and importlib.util.find_spec(extra) is None:
            return
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf8")
        elif block.language == "python":
            self.python(block)
        elif block.language == "bash":
            self.commands(block)
        elif block.language == "text":
            self.compare(block)

    def python(self, block: Block) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * block.line + block.text, str(block.page), "exec"), self.names)
        self.printed = printed.getvalue()

    def commands(self, block: Block) -> None:
        lines = [line.split(" #")[0].strip() for line in block.text.splitlines()]
        ours = [line for line in lines if line.startswith("python -m spacy ")]
        strange = [line for line in lines if line not in ours and not line.startswith(_PROGRAMS)]
        assert not strange, f"{block}: {strange[0]!r} is no command that can be run here: say `<!-- not run: ... -->`"
        fails = block.noted("fails")
        if ours:
            self.printed = ""
        for line in ours:
            result = CliRunner().invoke(app, shlex.split(line)[3:])
            shown = _COLOURS.sub("", result.output)
            assert result.exit_code == (0 if fails is None else 1), f"{block}: {line}\n{shown}\n{result.exception!r}"
            assert fails is None or fails in " ".join(shown.split()), f"{block}: {shown}"
            self.printed += shown

    def compare(self, block: Block) -> None:
        real = block.noted("real")
        if real is not None:
            header = real.partition("header: ")[2]
            assert not header or " ".join(header.split()) in " ".join(self.printed.split()), (
                f"{block}: no such header is printed"
            )
            return
        assert block.noted("prints") is not None, (
            f"{block}: say what prints this, `<!-- prints -->` or `<!-- real: COMMAND -->`"
        )
        printed = list(_words(self.printed))
        for part in re.split(r"^\.\.\.$", block.text, flags=re.M):
            wanted = list(_words(part))
            assert holds(printed, wanted), f"{block}: this is not printed\n{part}\nbut\n{self.printed}"


def _words(text: str) -> Iterator[str]:
    """Lines that are drawn are one word, however long they are."""
    for word in text.split():
        yield word[:2] if set(word) in ({"-"}, {"="}) and len(word) > 1 else word


def holds(printed: list[str], wanted: list[str]) -> bool:
    """Whether these words stand in what is printed, in one piece."""
    last = len(printed) - len(wanted)
    return any(all(map(same, printed[start : start + len(wanted)], wanted)) for start in range(last + 1))


def same(given: str, wanted: str) -> bool:
    """The same word, or nearly the same number: another machine may round otherwise and train a little otherwise."""
    if given == wanted:
        return True
    try:
        one, other = (float(word.strip("(){}[],:%'").replace(",", "")) for word in (given, wanted))
    except ValueError:
        return False
    return abs(one - other) <= 0.02 + 0.1 * abs(other)
