"""What MkDocs does for the site besides rendering docs/ (named in mkdocs.yml under `hooks`).

- `::: spacy_calib.fit` names what people import; the page is made from the module where that stands today.
- `<!-- made: registries -->` becomes what is registered.
- README.md, CONTRIBUTING.md and CHANGELOG.md of the repository are pages, too.
- Relative links to other files outside docs/ become whole addresses of the repository.
- `<picture>` becomes two pictures, of which the theme shows one, as a reader can switch its colours.
- A page that loads anything from outside is an error: the site is read offline.
- `llms.txt` lists the pages of the sidebar with the first sentence of each, for language models (llmstxt.org).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))  # MkDocs loads this file by its path

from spacy_calib import CalibError  # noqa: E402
from spacy_calib.about import __url__  # noqa: E402

OF_REPOSITORY = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
# What language models invent when they are asked for the confidence of an entity.
NOT_IN_SPACY = (
    "spaCy has no confidence for the entities of `ner`: `ent.score_`, `ent.confidence`, `ent.prob` and `token.score` do not exist. "
    "With spacy-calib an entity has `ent._.calib_ent_score` (calibrated) and `ent._.calib_ent_raw`, and a token `token._.calib_score`. "
    "A score is a float, or `None` where no gold exists for the label."
)
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)")
_PICTURE = re.compile(r'<picture><source [^>]*srcset="([^"]+)"><img src="([^"]+)"([^>]*)></picture>')
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
    return f"{module_of(found)}.{found.__qualname__}"


def module_of(part: Any) -> str:
    """The module whose source defines a class or a function: some classes have the package as their module, so that pickles outlive a move."""
    if part.__module__ != "spacy_calib":
        return str(part.__module__)
    name = part.__qualname__
    with_name = [
        module for key, module in sys.modules.items() if key.startswith("spacy_calib.") and vars(module).get(name) is part
    ]
    return next(module.__name__ for module in with_name if re.search(rf"^class {name}\b", inspect.getsource(module), re.M))


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages of the repository."""
    for page, name in OF_REPOSITORY.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fill in what is made from the code, and make links work on the site."""
    if "<!-- made: registries -->" in markdown:
        markdown = markdown.replace("<!-- made: registries -->", registries())
    return re.sub(r"^::: (\S+)$", _with_home, links_of_site(markdown, page.file.src_uri), flags=re.M)


def links_of_site(markdown: str, page: str) -> str:
    """Replace links to files that are no pages by their whole addresses. page (str): Its path in docs/, or in OF_REPOSITORY."""
    pages = {name: uri for uri, name in OF_REPOSITORY.items()}
    folder = ROOT if page in OF_REPOSITORY else (ROOT / "docs" / page).parent

    def replace(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[1]))
        if not target.is_relative_to(ROOT) or not target.exists():
            return match[0]  # MkDocs warns of it
        path = target.relative_to(ROOT).as_posix()
        if path in pages or path.startswith("docs/"):
            uri = pages.get(path) or path.removeprefix("docs/")
            return f"]({os.path.relpath(uri, Path(page).parent)}"
        return f"]({__url__}/{'tree' if target.is_dir() else 'blob'}/main/{path}"

    markdown = _PICTURE.sub(r'<img src="\2#only-light"\3><img src="\1#only-dark"\3>', markdown)
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else _LINK.sub(replace, part) for part in parts)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Make plain cells of header cells without text, which a screen reader would announce as nothing."""
    return re.sub(r"<th( [^>]*)?></th>", r"<td\1></td>", html)


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


def llms_txt(config: Any) -> str:
    """Return the text of llms.txt: what the package is, what spaCy does not have, and where each page is."""
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}", "", NOT_IN_SPACY]
    for section in config["nav"]:
        for title, pages in section.items():
            lines += ["", f"## {title}", ""]
            for name, page in (entry for part in pages for entry in part.items()):
                address = f"{config['site_url']}{page.removesuffix('.md')}.html"
                lines.append(f"- [{name}]({address}): {first_sentence(ROOT / 'docs' / page)}")
    return "\n".join(lines) + "\n"


def first_sentence(page: Path) -> str:
    """Return the first sentence of the first paragraph of a page, without marks of Markdown."""
    text = re.sub(r"<!--.*?-->|<picture>.*?</picture>|^```.*?^```$", "", page.read_text(encoding="utf8"), flags=re.M | re.S)
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    paragraph = next((one for one in paragraphs if one and one[0] not in "#|<!-:["), "").partition("<br>")[0]
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph).replace("**", "").replace("`", "").replace("*", "")
    return re.split(r"(?<=[.!?:]) (?=[A-Z(])", plain)[0]


def on_post_build(config: Any) -> None:
    """Write llms.txt. Raises PluginError if a page asks for something from outside when it is opened."""
    (Path(config["site_dir"]) / "llms.txt").write_text(llms_txt(config), encoding="utf8")
    asked = [
        f"{path.relative_to(config['site_dir'])}: {element[:120]}"
        for path in sorted(Path(config["site_dir"]).rglob("*.html"))
        for element in _LOADS.findall(path.read_text(encoding="utf8"))
        if not element.startswith("<link") or (_OUTSIDE.search(element) and not _NOT_LOADED.search(element))
    ]
    if asked:
        raise PluginError("The site must be readable offline, but loads from outside:\n" + "\n".join(asked))
