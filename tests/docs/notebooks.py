"""The notebooks in notebooks/, made of pages of docs/: their text, and their blocks as cells, without outputs.

python -m tests.docs.notebooks           write them
python -m tests.docs.notebooks --check   end with 1 where one is not what would be written
python -m tests.docs.notebooks --run     run each from its first cell to its last, from an empty folder
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.docs.pages import _BLOCK, DOCS, ROOT

FOLDER = ROOT / "notebooks"
PAGES = {
    "first-pipeline": DOCS / "start" / "first-fit.md",
    "entities-with-a-precision": DOCS / "guides" / "cut-offs.md",
    "scores-of-another-model": DOCS / "components" / "other-tools.md",
}
_ENDED = "assert not _exit_code, 'the command failed'"


def notebook_of(page: Path) -> Any:
    """The page as a notebook."""
    import nbformat

    cells: list[Any] = []
    for kind, text in _parts(page):
        make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
        if text.strip():
            cells.append(make(text.strip(), id=f"cell-{len(cells)}"))
    about = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return nbformat.v4.new_notebook(cells=cells, metadata=about)


def _parts(page: Path) -> Iterator[tuple[str, str]]:
    """("code" or "text", what stands there), in order; links of the page lead to the same files from where the notebook is."""
    text, begin = page.read_text(encoding="utf8"), 0
    for match in _BLOCK.finditer(text):
        yield "text", _linked(text[begin : match.start()], page)
        yield _cell(match)
        begin = match.end()
    yield "text", _linked(text[begin:], page)


def _cell(match: re.Match[str]) -> tuple[str, str]:
    """A block as a cell; one that is not run, or not by everybody, and what is printed, as text."""
    note, code = match["note"] or "", match["text"]
    title = re.search(r'title="([^"]+)"', match["options"])
    shown = match["language"] == "text" or note.startswith(("not run", "needs extra", "slow", "fails"))
    if shown:
        return "text", f"```{match['language']}\n{code}```"
    if title:
        return "code", f"%%writefile {title[1]}\n{code}"
    if match["language"] == "bash":
        return "code", "\n".join(_command(line) for line in code.splitlines())
    return "code", code


def _command(line: str) -> str:
    return f"%{line}" if line.startswith("pip ") else f"!{line}" if line.strip() and not line.startswith("#") else line


def _linked(text: str, page: Path) -> str:
    def whole(match: re.Match[str]) -> str:
        path, _, anchor = match[1].partition("#")
        target = os.path.relpath(page.parent / path if path else page, FOLDER)
        return f"]({target}{'#' + anchor if anchor else ''})"

    return re.sub(r"\]\((?!https?:)([^)\s]+)\)", whole, re.sub(r"<!-- [^\n]* -->\n?", "", text))


def run(notebook: Any) -> None:
    """Run all cells in an empty folder, but for those that install. RAISES nbclient.exceptions.CellExecutionError: one fails."""
    from nbclient import NotebookClient

    notebook.cells = [cell for cell in notebook.cells if not cell.source.startswith("%pip")]
    # A command that ends with a code is no error to a notebook; here it is one.
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.startswith("!"):
            cell.source = cell.source.replace("\n!", f"\n{_ENDED}\n!")
            cell.source += f"\n{_ENDED}"
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()


def main() -> int:
    import nbformat

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--run", action="store_true")
    given = parser.parse_args()
    for name, page in PAGES.items():
        file, notebook = FOLDER / f"{name}.ipynb", notebook_of(page)
        written = nbformat.writes(notebook) + "\n"
        if given.check or given.run:
            if file.read_text(encoding="utf8") != written:
                sys.stderr.write(f"{file.name} is not what its page says today: run `make reference`.\n")
                return 1
        else:
            file.write_text(written, encoding="utf8")
        if given.run:
            run(notebook)
            sys.stdout.write(f"{file.name}: all cells run\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
