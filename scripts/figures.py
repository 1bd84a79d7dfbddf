"""The figures of the pages: with which command, which version and which code each was made, and which of them are older than the code.

    python scripts/figures.py --check             list every set of figures, and which are older than the code that they measure
    python scripts/figures.py [NAME ...]          make those of these names or pages; all that are older than the code, where none is named
    python scripts/figures.py NAME --from FILE    what the command printed is in FILE: it was run on this very code

`docs/figures.json` has an entry for each command: the page, the command, the commands that make what it reads (`first`), the rooms of the package whose
code it measures, and, written here, the version, the day and a digest of that code.
Before a release all figures are made anew; until then some may be older than the code, which is no error. What a
command prints is kept in the cache, by the code: a run that was broken off goes on behind the last command that ended. Where `writes` names a page,
the output is its part between `<!-- written: NAME -->` and `<!-- end: NAME -->`. Tables of the page behind `<!-- figures: NAME -->` are compared: each of their numbers must stand in the output, else the
figures are not taken for made, and the rows are shown. Sentences about the figures are read by people.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import srsly
from code_digest import RECORD, Entry, digest_of, entries, stale
from frame import ROOT, default_cache, head, replace_part, row, say

from spacy_calib.about import __version__

# What a command leaves to whoever runs it: MODEL, DATA; not a variable that it sets, nor a key of JSON.
PLACES = re.compile(r'(?<!")\b[A-Z]{4,}\b(?!=)')
SHOWS = re.compile(r"python (scripts/\w+\.py)")
# Programs that make no figures, and the one whose page is made of the cards.
OTHERS = {f"scripts/{name}.py" for name in ("docs_commands", "figures", "pretrained")}
_NUMBER = re.compile(r"\d*[.,]\d+|\d{3,}")

# What is recorded


def save(found: Sequence[Entry], root: Path) -> None:
    srsly.write_json(root / RECORD, list(found))


def faults(found: Sequence[Entry], root: Path) -> Iterator[str]:
    """Yield a sentence for each page that names a program which the record does not have."""
    commands = " ".join(one["command"] for one in found)
    docs = root / "docs"
    for page in sorted(docs.rglob("*.md")):
        name, text = page.relative_to(docs).as_posix(), page.read_text(encoding="utf8")
        if missing := sorted(set(SHOWS.findall(text)) - set(SHOWS.findall(commands)) - OTHERS):
            yield f"{name}: docs/figures.json knows no figures by {', '.join(missing)}."


# Making


def printed(one: Entry, root: Path) -> str:
    """What the command prints: from the cache, where it ended before on this very code. Ends the program if it fails."""
    kept = default_cache() / "figures" / f"{one['name']}-{digest_of(one['measures'], root)}.txt"
    if not kept.exists():
        if given := PLACES.findall(one["command"]):
            raise SystemExit(
                f"{one['name']}: put what is yours for {', '.join(given)} into '{one['command']}', and give its output with --from."
            )
        for command in one.get("first", ()):
            _run(one["name"], command, root)
        done = _run(one["name"], one["command"], root, allowed=(0, 1))  # 1: a target was missed
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(done.stdout, encoding="utf8")
    return kept.read_text(encoding="utf8")


def _run(name: str, command: str, root: Path, allowed: Sequence[int] = (0,)) -> subprocess.CompletedProcess[str]:
    """The ended command. Ends the program where it ended otherwise than allowed."""
    say(f"{name}: {command}")
    done = subprocess.run(["bash", "-c", command], cwd=root, stdout=subprocess.PIPE, text=True)
    if done.returncode not in allowed:
        raise SystemExit(f"{name}: the command ended with {done.returncode}: {command}")
    return done


def numbers_in(text: str) -> set[str]:
    """Numbers with a point, a comma or three digits; .5 is 0.5."""
    return {number.lstrip("0") for number in _NUMBER.findall(text)}


def differing(text: str, name: str, output: str) -> list[str]:
    """The rows of a page's tables behind `<!-- figures: NAME -->` that have a number which the output has not."""
    have, rows = numbers_in(output), []
    for table in re.findall(rf"<!-- figures: {re.escape(name)} -->\n\n((?:\|.*\n)+)", text):
        shown = table.splitlines()[2:]
        rows += [line for line in shown if "the paper" not in line and numbers_in(line) - have]
    return rows


def take(one: Entry, output: str, root: Path) -> bool:
    """Whether these figures are those of the page now; shows the rows that are not."""
    file = root / "docs" / (one.get("writes") or one["page"])
    if one.get("writes"):
        replace_part(file, one["name"], output)
    rows = differing(file.read_text(encoding="utf8"), one["name"], output)
    print(
        *(f"{one['page']}: the output has other numbers than this row: {line}" for line in rows),
        sep="\n",
        end="\n" * bool(rows),
    )
    if not rows:
        one.update(version=__version__, made=date.today().isoformat(), code=digest_of(one["measures"], root))
    return not rows


def chosen(found: Sequence[Entry], names: Sequence[str], root: Path) -> list[Entry]:
    """The entries of these names or pages. Ends the program with a sentence where one is unknown."""
    known = {one[key] for one in found for key in ("name", "page")}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"docs/figures.json knows no figures or page {', '.join(unknown)}; it has {', '.join(sorted(known))}.")
    return [one for one in found if ({one["name"], one["page"]} & set(names) if names else stale(one, root))]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures, or pages with all of theirs")
    parser.add_argument("--check", action="store_true", help="make nothing, list what is older than the code")
    parser.add_argument("--from", dest="file", type=Path, help="what the command of one NAME printed")
    options = parser.parse_args(arguments)
    found = entries(root)
    if options.check:
        head("| page | figures | version | made | older than the code |")
        for one in found:
            row(*(one[key] for key in ("page", "name", "version", "made")), "yes" if stale(one, root) else "-")
        return 0
    wanted = chosen(found, options.names, root)
    if options.file and len(wanted) != 1:
        parser.error("--from needs one NAME")
    missed = 0
    for one in wanted:
        output = options.file.read_text(encoding="utf8") if options.file else printed(one, root)
        missed += not take(one, output, root)
        save(found, root)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
