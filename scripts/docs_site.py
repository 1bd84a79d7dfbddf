"""What MkDocs does for the site besides rendering docs/ (named in mkdocs.yml under `hooks`).

- `::: spacy_calib.fit` names what people import; the page is made from the module where that stands today.
- `<!-- made: tree -->` and `<!-- made: numbers -->` become what scripts/house.py reads from the code, `<!-- made: registries -->` what is registered.
- CONTRIBUTING.md and CHANGELOG.md of the repository are pages, too.
- A page that loads anything from outside is an error: the site is read offline.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))  # MkDocs loads this file by its path

import house  # noqa: E402

from spacy_calib import CalibError  # noqa: E402

OF_REPOSITORY = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
_LOADS = re.compile(r"""<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc=["']?(?:https?:)?//[^"'\s>]+|<link\b[^>]*>""")
_OUTSIDE = re.compile(r"""\bhref=["']?(?:https?:)?//""")
_NOT_LOADED = re.compile(r"""\brel=["']?(?:canonical|next|prev|edit)\b""")


def home_of(name: str) -> str:
    """The module and name where something that people import is defined: spacy_calib.fit -> spacy_calib.cli.api.fit."""
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except CalibError:  # an extra is missing, without which the module cannot be imported
        return name
    return f"{found.__module__}.{found.__qualname__}"


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages of the repository."""
    for page, name in OF_REPOSITORY.items():
        text = (ROOT / name).read_text(encoding="utf8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fills in what is made from the code."""
    if "<!-- made: " in markdown:
        read = house.read_house(ROOT / "spacy_calib")
        for word, text in (("tree", house.tree(read)), ("numbers", house.numbers(read)), ("registries", registries())):
            markdown = markdown.replace(f"<!-- made: {word} -->", text)
    return re.sub(r"^::: (\S+)$", _with_home, markdown, flags=re.M)


def registries() -> str:
    """A table of what is registered, from the entry points."""
    found: dict[str, list[str]] = {}
    for point in importlib.metadata.distribution("spacy-calib").entry_points:
        if point.group.startswith("spacy_calib_"):
            found.setdefault(point.group, []).append(f"`{point.name}`")
    rows = [f"| `{group.removeprefix('spacy_')}` | {', '.join(names)} |" for group, names in sorted(found.items())]
    return "\n".join(["| registry | ours |", "| --- | --- |", *rows])


def _with_home(found: re.Match[str]) -> str:
    name = found.group(1)
    return f"::: {home_of(name)}\n    options:\n      heading: {name}"


def on_post_build(config: Any) -> None:
    """RAISES PluginError: a page asks for something from outside when it is opened."""
    asked = [
        f"{path.relative_to(config['site_dir'])}: {element[:120]}"
        for path in sorted(Path(config["site_dir"]).rglob("*.html"))
        for element in _LOADS.findall(path.read_text(encoding="utf8"))
        if not element.startswith("<link") or (_OUTSIDE.search(element) and not _NOT_LOADED.search(element))
    ]
    if asked:
        raise PluginError("The site must be readable offline, but loads from outside:\n" + "\n".join(asked))
