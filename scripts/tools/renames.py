"""New places of modules and of names, and how imports and texts follow them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# Packages whose modules may move.
TOPS = ("spacy_calib", "tests")
_DOTTED = re.compile(rf"\b(?:{'|'.join(TOPS)})(?:\.\w+)+(?::\w+)?")
# An import on one line of a page or a string.
_IMPORT = re.compile(rf"^([ >]*)from ((?:{'|'.join(TOPS)})[\w.]*) import (\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)$", re.M)
# `doc.reading.gold_files`: a module of the package in prose, without the package's name.
_SHORT = re.compile(r"(?<=`)[a-z_]\w*(?:\.\w+)+")
# ".pipe.event:EventPipe": a module of the package in a string of its own code.
_OWN_STRING = re.compile(r'"\.([a-z_]\w*(?:\.[a-z_]\w*)*)(?::(\w+))?"')


def dotted(path: str) -> str:
    """The module of a file: a/b.py and a/b/__init__.py are a.b."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def package_of(path: str) -> str:
    """The package that holds a file."""
    return path.rpartition("/")[0].replace("/", ".")


def relative(module: str, package: str) -> str:
    """A module as it is imported in a package of the same top: a.b.c is ..b.c in a.d."""
    here, there = package.split("."), module.split(".")
    shared = 0
    while shared < min(len(here), len(there)) and here[shared] == there[shared]:
        shared += 1
    return "." * (len(here) - shared + 1) + ".".join(there[shared:])


def absolute(node: ast.ImportFrom, path: str) -> str:
    """The module that an import of a file names."""
    if not node.level:
        return node.module or ""
    parents = package_of(path).split(".")
    return ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [node.module])])


def bound_names(paths: Iterable[str]) -> frozenset[tuple[str, str]]:
    """(package, name) of each name that a package's __init__.py brings: `from package import name` is not a module of that name.

    paths (Iterable[str]): Files, of which the __init__.py are read.
    """
    names: set[tuple[str, str]] = set()
    for path in paths:
        if not path.endswith("/__init__.py"):
            continue
        modules: set[str] = set()
        brought: set[str] = set()
        for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf8"))):
            if isinstance(node, ast.ImportFrom):
                is_module = node.level == 1 and not node.module
                (modules if is_module else brought).update(alias.asname or alias.name for alias in node.names)
            elif isinstance(node, ast.Assign) and any(
                isinstance(one, ast.Name) and one.id == "__all__" for one in node.targets
            ):
                brought |= {
                    one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant) and isinstance(one.value, str)
                }
        names |= {(dotted(path), name) for name in brought - modules}
    return frozenset(names)


@dataclass(frozen=True)
class Renames:
    """Where modules and names are after a move.

    modules (Mapping): Module or package -> its new name. names (Mapping): (module, name) -> the module that has the name now.
    existing (Collection): Modules before the move. bound (Collection): See `bound_names`.
    """

    modules: Mapping[str, str]
    names: Mapping[tuple[str, str], str]
    existing: set[str]
    bound: frozenset[tuple[str, str]]

    def new_module(self, module: str) -> str:
        return self.modules.get(module, module)

    def find(self, module: str, name: str) -> tuple[str, str]:
        """(module, name) to import instead of `from module import name`."""
        whole = f"{module}.{name}"
        if (module, name) in self.names:
            return self.new_module(self.names[module, name]), name
        if whole in self.existing and (module, name) not in self.bound:
            package, _, last = self.new_module(whole).rpartition(".")
            return package, last
        return self.new_module(module), name

    def rewrite_text(self, text: str) -> str:
        """Rewrite one-line imports and dotted names anywhere in a text."""
        text = _DOTTED.sub(self._new_dotted, _IMPORT.sub(self._new_import, text))
        return _SHORT.sub(lambda match: self._new_name(f"{TOPS[0]}.{match.group()}", 3).removeprefix(f"{TOPS[0]}."), text)

    def rewrite_own_strings(self, text: str, top: str) -> str:
        """Rewrite strings that name a module of a package relative to its top: ".pipe.event:EventPipe"."""

        def rewrite(match: re.Match[str]) -> str:
            module, name = f"{top}.{match[1]}", match[2]
            module = self.new_module(self.names.get((module, name), module))
            return f'"{module.removeprefix(top)}{f":{name}" if name else ""}"'

        return _OWN_STRING.sub(rewrite, text)

    def _new_dotted(self, match: re.Match[str]) -> str:
        whole, _, name = match.group().partition(":")  # an entry point has module:name
        if name:
            return f"{self.new_module(self.names.get((whole, name), whole))}:{name}"
        return self._new_name(whole)

    def _new_name(self, whole: str, shortest: int = 2) -> str:
        """The new name of a module or of what it holds. shortest (int): Parts that a module has at least."""
        parts = whole.split(".")
        for length in range(len(parts), shortest - 1, -1):
            module, rest = ".".join(parts[:length]), parts[length:]
            if rest and (module, rest[0]) in self.names:
                return ".".join([self.new_module(self.names[module, rest[0]]), *rest])
            if module in self.modules and (rest or tuple(module.rsplit(".", 1)) not in self.bound):
                return ".".join([self.modules[module], *rest])
        return whole

    def _new_import(self, match: re.Match[str]) -> str:
        space, base, names = match.groups()
        groups: dict[str, list[str]] = {}
        for imported in names.split(", "):
            name, _, alias = imported.partition(" as ")
            module, new = self.find(base, name)
            groups.setdefault(module, []).append(_imported(new, name, alias))
        return "\n".join(f"{space}from {module} import {', '.join(group)}" for module, group in groups.items())


def _imported(new: str, old: str, alias: str | None) -> str:
    """`name` or `name as alias`, so that the code below goes on to use the old name."""
    return new if new == old and not alias else f"{new} as {alias or old}"


def rewrite_imports(text: str, old_path: str, new_path: str, renames: Renames) -> str:
    """Rewrite each `from X import ...` of a module that moved from one path to another."""
    lines = text.splitlines(keepends=True)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    for node in sorted(nodes, key=lambda node: -node.lineno):
        base = absolute(node, old_path)
        if base.partition(".")[0] not in TOPS or node.names[0].name == "*":
            continue
        groups: dict[str, list[str]] = {}
        for alias in node.names:
            module, new = renames.find(base, alias.name)
            if module == dotted(new_path) and (base, alias.name) in renames.names:
                continue  # the name came into this very module
            if node.level:
                module = relative(module, package_of(new_path))
            groups.setdefault(module, []).append(_imported(new, alias.name, alias.asname))
        before = "".join(lines[node.lineno - 1 : node.end_lineno])
        unchanged = [_imported(alias.name, alias.name, alias.asname) for alias in node.names]
        if [*groups.values()] == [unchanged]:
            after = re.sub(r"from\s+[.\w]+\s+import", f"from {next(iter(groups))} import", before, count=1)
        else:
            comment = re.search(r"  #.*", before)
            space = " " * node.col_offset
            after = "\n".join(f"{space}from {module} import {', '.join(names)}" for module, names in groups.items())
            after += (comment.group() if comment else "") + "\n" if groups else ""
        lines[node.lineno - 1 : node.end_lineno] = [after]
    return "".join(lines)
