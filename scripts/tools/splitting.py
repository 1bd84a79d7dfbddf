"""Names at the top of a module, moved into other modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.renames import Renames, dotted, package_of, relative, rewrite_imports

_FUTURE = "from __future__ import annotations\n"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Statement:
    """A statement at the top of a module. start, end (int): Its lines, with the comments that stand directly above it.

    names, uses (frozenset): Names that it defines, and those that it reads. is_header (bool): A docstring or an import.
    """

    text: str
    start: int
    end: int
    names: frozenset[str]
    uses: frozenset[str]
    is_definition: bool
    is_header: bool


def read_statements(text: str) -> list[Statement]:
    lines, statements = text.splitlines(keepends=True), []
    for node in ast.parse(text).body:
        start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))]) - 1
        while start and lines[start - 1].startswith("#"):
            start -= 1
        end = node.end_lineno or node.lineno
        uses = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        statements.append(
            Statement(
                "".join(lines[start:end]),
                start,
                end,
                frozenset(_defined(node)),
                frozenset(uses),
                isinstance(node, _DEFINITIONS),
                isinstance(node, _IMPORTS) or _is_docstring(node) or _is_for_typing(node),
            )
        )
    return statements


def top_names(text: str) -> set[str]:
    """Names that a module defines at its top; those that it imports are not among them."""
    return {name for statement in read_statements(text) for name in statement.names}


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, _DEFINITIONS):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_typing(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports_for(text: str, uses: set[str]) -> str:
    """The imports of a module that code with these names needs. Those for what they do (`__future__`, noqa: F401) are always needed."""
    lines, needed = text.splitlines(), []
    for node in ast.parse(text).body:
        if isinstance(node, ast.If) and _is_for_typing(node):
            inner = imports_for("\n".join(map(ast.unparse, node.body)), uses)
            if inner:
                needed += [
                    "from typing import TYPE_CHECKING",
                    "if TYPE_CHECKING:",
                    *(f"    {line}" for line in inner.splitlines()),
                ]
        elif isinstance(node, _IMPORTS):
            does = "noqa: F401" in (line := lines[node.lineno - 1]) or "__future__" in line
            node.names = [alias for alias in node.names if does or (alias.asname or alias.name.split(".")[0]) in uses]
            if node.names:
                needed.append(ast.unparse(node) + ("  # noqa: F401" if "noqa" in line else ""))
    return "".join(f"{line}\n" for line in needed)


@dataclass(frozen=True)
class Splitter:
    """A module and where its names go. places (Mapping): File -> names. about (Mapping): New file -> its docstring."""

    path: str
    places: Mapping[str, Sequence[str]]
    about: Mapping[str, str]
    renames: Renames

    @cached_property
    def targets(self) -> dict[str, str]:
        """Name -> the file that it goes to."""
        return {name: new for new, names in self.places.items() for name in names}

    def write(self) -> list[str]:
        """Write the new modules and the rest of the old one, which is deleted if only imports are left. Returns what is left to do."""
        old = Path(self.path)
        text = old.read_text(encoding="utf8")
        statements = read_statements(text)
        staying = [statement for statement in statements if not statement.names & {*self.targets}]
        stay = {name for statement in staying for name in statement.names}
        notes = []
        for new in self.places:
            moved = [statement for statement in statements if {self.targets.get(name) for name in statement.names} == {new}]
            uses = {name for statement in moved for name in statement.uses}
            notes += [f"{new} uses {name}, which stays in {self.path}." for name in sorted(uses & stay)]
            self._write_new(new, moved, imports_for(text, uses))
        if all(statement.is_header for statement in staying):
            old.unlink()
            return notes
        gone = {line for statement in statements if statement not in staying for line in range(statement.start, statement.end)}
        lines = "".join("\n" if number in gone else line for number, line in enumerate(text.splitlines(keepends=True)))
        used = {name for statement in staying for name in statement.uses}
        old.write_text(_tidied(with_imports(lines, self._imports_of(used, self.path))), encoding="utf8")
        return notes

    def _write_new(self, new: str, moved: Sequence[Statement], imports: str) -> None:
        nowhere = Renames({}, {}, self.renames.existing, self.renames.bound)
        imports = rewrite_imports(imports, self.path, new, nowhere)
        imports += self._imports_of({name for statement in moved for name in statement.uses}, new)
        path = Path(new)
        if path.exists():
            text = path.read_text(encoding="utf8")
            imports = imports.replace(_FUTURE, "")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            text = f'"""{self.about[new]}"""\n\n'
        path.write_text(_tidied(with_statements(with_imports(text, imports), moved)), encoding="utf8")

    def _imports_of(self, uses: set[str], path: str) -> str:
        """Imports of the moved names that a module uses."""
        groups: dict[str, list[str]] = {}
        for name in sorted(uses & {*self.targets}):
            if self.targets[name] != path:
                groups.setdefault(relative(dotted(self.targets[name]), package_of(path)), []).append(name)
        return "".join(f"from {module} import {', '.join(names)}\n" for module, names in groups.items())


def with_imports(text: str, imports: str) -> str:
    """A module with more imports, after its own or its docstring."""
    lines = text.splitlines(keepends=True)
    header = [node for node in ast.parse(text).body if isinstance(node, _IMPORTS) or _is_docstring(node)]
    end = max((node.end_lineno or 0 for node in header), default=0)
    if header and imports and not isinstance(header[-1], _IMPORTS):
        imports = f"\n{imports}"
    return "".join([*lines[:end], imports, *lines[end:]])


def with_statements(text: str, moved: Sequence[Statement]) -> str:
    """A module with more statements: constants that use nothing of the code below stand after the imports, the others at the end."""
    statements = read_statements(text)
    late = {name for one in [*statements, *moved] if one.is_definition for name in one.names}
    early = []
    for statement in moved:
        if not statement.is_definition and not statement.uses & late:
            early.append(statement)
        else:
            late |= statement.names
    header = max((statement.end for statement in statements if statement.is_header), default=0)
    code = [statement for statement in statements if statement.start >= header]
    if not code:  # a new module: all in their order
        early = []
    lines = text.splitlines(keepends=True)
    rest = "".join(lines[header:])
    if early:
        rest = "\n" + _joined(early) + "\n\n" * code[0].is_definition + rest.lstrip("\n")
    return "".join([*lines[:header], rest, "\n\n", _joined([statement for statement in moved if statement not in early])])


def _joined(statements: Sequence[Statement]) -> str:
    """The texts of statements, as far from each other as they were, but at least two lines around functions and classes."""
    text = ""
    for before, statement in zip([None, *statements], statements, strict=False):
        adjacent = before and before.end == statement.start
        around = before and (before.is_definition or statement.is_definition)
        text += ("" if not before or adjacent else "\n\n" if around else "\n") + statement.text
    return text


def _tidied(text: str) -> str:
    """At most two blank lines in a row, none at the end."""
    return re.sub(r"\n{4,}", "\n\n\n", text).rstrip("\n") + "\n"
