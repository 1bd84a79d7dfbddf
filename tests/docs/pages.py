"""Reads and runs the pages of docs/ and README.md: their Python, their files, their commands; and compares what they say is printed.

A comment before a block says what a block cannot say itself:
`<!-- prints -->` the text is printed by the blocks before it, number by number but for the last digits; `...` stands for what is left out.
`<!-- trains: FOLDER DIGEST -->` the block makes this pipeline. On another kind of processor training takes other turns: where the digest of the
weights is another one, lines of numbers are not compared on this page.
`<!-- real: COMMAND -->` the text is printed by this command on real data (`the blocks above`: by these): compared by test_real_pages.py, where
there is such data. What is printed on made-up data must have the same header.
`<!-- not run: REASON -->` it is never run. `<!-- fails: SENTENCE -->` its command ends with code 1 and this sentence.
`<!-- needs extra: MODULE -->` the block is run where the module is installed.
`<!-- data: PATH as FILE -->` at the head of a page: a reader has this file of SPACY_CALIB_DATA, unpacked, in the folder; such a page is run by test_real_pages.py alone.
A Python block with a title is a file; so are blocks in other languages that have one.

With DOCS_PRINTED=write in the environment (`make printed`) what is printed otherwise is written into the page, and no error.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib.util
import io
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_calib.cli  # noqa: F401  (adds `calib` to the app of spaCy, as the entry point does for `python -m spacy`)

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
_BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n\n?)?```(?P<language>\w+)(?P<options>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PARTS = re.compile(r"^\.\.\.\n", flags=re.M)
WRITES = os.environ.get("DOCS_PRINTED") == "write"
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


def data_of(page: Path) -> dict[str, str]:
    """The files that a reader of a page has: name in the folder -> path in SPACY_CALIB_DATA; an empty dict: the page needs none."""
    lines = re.findall(r"^<!-- data: (\S+) as (\S+) -->$", page.read_text(encoding="utf8"), flags=re.M)
    return {name: path for path, name in lines}


def digest_of(pipeline: Path) -> str:
    """Of the weights of a pipeline."""
    files = sorted(file for file in pipeline.rglob("model") if file.is_file())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


@dataclass
class Run:
    """One reader's session: the names that Python knows, and all that was printed since the last block that was run.

    as_trained (bool): Whether the pipelines have the weights that they had where the page was written. real (bool): Whether the data are real.
    """

    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""
    as_trained: bool = True
    real: bool = False

    def page(self, page: Path) -> Run:
        """All blocks of a page, in order. RAISES AssertionError: a block fails, or prints something else than the page says."""
        for block in blocks_of(page):
            self.block(block)
        return self

    def block(self, block: Block) -> None:
        extra = block.noted("needs extra")
        skipped = block.noted("not run") is not None
        if skipped or extra and importlib.util.find_spec(extra) is None:
            return
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf8")
        elif block.language == "python":
            self.python(block)
        elif block.language == "bash":
            self.commands(block)
        elif block.language == "text":
            self.compare(block)
        if trains := block.noted("trains"):
            folder, digest = trains.split()
            found = digest_of(Path(folder))
            if WRITES:
                rewrite(block.page, f"trains: {trains}", f"trains: {folder} {found}")
            self.as_trained &= WRITES or digest == found

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
            self.printed += self.command(block, line, 0 if fails is None else 1)
            assert fails is None or fails in " ".join(self.printed.split()), f"{block}: {self.printed}"

    def command(self, block: Block, line: str, code: int = 0) -> str:
        """RETURNS (str): What it prints."""
        result = CliRunner().invoke(app, shlex.split(line)[3:])
        shown = _COLOURS.sub("", result.output)
        assert result.exit_code == code, f"{block}: {line}\n{shown}\n{result.exception!r}"
        assert "JUDGED ON THE FIT DATA" not in shown, f"{block}: {line} sets a bad example"
        return shown

    def compare(self, block: Block) -> None:
        """What the page says is printed, with what is."""
        real = block.noted("real")
        assert real is not None or block.noted("prints") is not None, (
            f"{block}: say what prints this, `<!-- prints -->` or `<!-- real: COMMAND -->`"
        )
        if real is not None and not self.real:
            for header in headers_of(block.text) if real.startswith("python -m spacy calib ") else ():
                assert holds(list(_words(self.printed)), list(_words(header))), f"{block}: no such header is printed\n{header}"
            return
        if real is not None and real != "the blocks above":
            self.printed = self.command(block, real)
        wanted = block.text if self.as_trained else "...\n".join(re.findall(r"^\D+\n", block.text, flags=re.M))
        missing = not_printed(self.printed, wanted)
        if missing is not None and WRITES:
            rewrite(block.page, block.text, reprinted(block.text, self.printed))
        else:
            assert missing is None, f"{block}: this is not printed\n{missing}\nbut\n{self.printed}"


def rewrite(page: Path, old: str, new: str) -> None:
    text = page.read_text(encoding="utf8")
    assert text.count(old) == 1, f"{page}: {text.count(old)} times\n{old}"
    page.write_text(text.replace(old, new), encoding="utf8")


def headers_of(text: str) -> list[str]:
    """Of the tables in a text: the lines above the drawn ones."""
    lines = text.splitlines()
    return [above for above, line in zip(lines, lines[1:], strict=False) if re.fullmatch(r"-{2,}( +-+)*", line)]


def not_printed(printed: str, wanted: str) -> str | None:
    """The first part, between two lines of `...`, that is not printed behind the parts before it; None if all are."""
    rest = list(_words(printed))
    for part in _PARTS.split(wanted):
        words = list(_words(part))
        place = place_of(rest, words)
        if place is None:
            return part
        rest = rest[place + len(words) :]
    return None


def reprinted(text: str, printed: str) -> str:
    """The text with each part replaced by the lines printed that are most like it: the same words, and other numbers."""
    rest, parts = [line.rstrip() for line in printed.splitlines()], []
    for part in _PARTS.split(text):
        lines = part.splitlines()
        if not lines:  # the text begins or ends with `...`
            parts.append("")
            continue
        like = difflib.SequenceMatcher(None, [*map(_form, lines)], [*map(_form, rest)], autojunk=False).get_matching_blocks()[
            :-1
        ]
        assert like, f"Nothing like this is printed, write it by hand:\n{part}\nbut\n{printed}"
        first, last = like[0], like[-1]
        end = last.b + len(lines) - last.a
        parts.append("\n".join(rest[max(0, first.b - first.a) : end]) + "\n")
        rest = rest[end:]
    return "...\n".join(parts)


def _form(line: str) -> str:
    """A line without its numbers and the width of its columns."""
    return " ".join(re.sub(r"[\d.,]*\d", "0", re.sub(r"-{2,}", "--", line)).split())


def _words(text: str) -> Iterator[str]:
    """Lines that are drawn are one word, however long they are."""
    for word in text.split():
        yield word[:2] if set(word) in ({"-"}, {"="}) and len(word) > 1 else word


def holds(printed: list[str], wanted: list[str]) -> bool:
    """Whether these words stand in what is printed, in one piece."""
    return place_of(printed, wanted) is not None


def place_of(printed: list[str], wanted: list[str]) -> int | None:
    """Where these words begin in what is printed; None where they do not stand there in one piece."""
    bounds = ["to" in (*wanted[max(0, i - 1) : i], *wanted[i + 1 : i + 2]) for i in range(len(wanted))]
    starts = range(len(printed) - len(wanted) + 1)
    return next((start for start in starts if all(map(same, printed[start : start + len(wanted)], wanted, bounds))), None)


def same(given: str, wanted: str, is_bound: bool = False) -> bool:
    """The same word, or the same number: another machine may round otherwise. is_bound: Whether it is one end of an interval.

    Between processors the figures of the same weights differ by .0005 (EWT, `calib evaluate`, kernels of OpenBLAS for Prescott and Haswell), and
    the score of one token by .0018: what is chosen on folds may be another neighbour of the best. Two entities that change places in the order of
    scores move a cut-off by one entity, and the interval of what it accepts by .0053 (UNER, kernels for SkylakeX and Haswell);
    of 2,375 tokens above a cut-off, 10 may be below it (Prescott).
    """
    if given == wanted:
        return True
    one, other = (word.strip("(){}[],:%'.") for word in (given, wanted))
    try:
        apart = abs(float(one.replace(",", "")) - float(other.replace(",", "")))
    except ValueError:
        return False
    last_digit = 10.0 ** -len(other.partition(".")[2])
    share = 0.005 if "." not in other else 0.01 if is_bound else 0.003
    return apart <= 1.001 * max(last_digit, 0.0006) + share * abs(float(other.replace(",", "")))
