"""Writes what the docs read from the code: reference/commands.md, every command of `python -m spacy calib` with its options; in
reference/python.md the lists of what is public.

python scripts/docs_commands.py           write the pages
python scripts/docs_commands.py --check   end with 1 where a page is not what would be written
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import distribution
from typing import Any

import typer
from frame import ROOT
from spacy.tokens.underscore import Underscore

import spacy_calib
from spacy_calib import cli
from spacy_calib.cli import calib_cli, command_names, help_lines, load_command
from spacy_calib.gold import file_readers
from spacy_calib.pipe.scorer import score_names
from spacy_calib.plugins.pretrained import card
from spacy_calib.plugins.spark.score_rows import COLUMNS
from spacy_calib.registry import REGISTERED

_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w.-]*\w)")
DOCS = ROOT / "docs"
# The head of the page is written by hand; everything below this line of it is written here.
MARK = "<!-- commands -->\n"
NOTE = "<!-- Written by scripts/docs_commands.py (`make reference`): change the help of the command, not what is below. -->"
# An option with the same default and meaning in this many commands has one row for all of them.
MIN_SHARING = 4


def page() -> str:
    """The page as Markdown: its head, then a list of all commands, the options that many share, and each command."""
    group: Any = typer.main.get_command(calib_cli)
    commands = {name: group.commands[name] for name in command_names()}
    for name, command in commands.items():
        context = typer.Context(command, info_name=name)
        command.format_help(context, context.make_formatter())  # the registries are asked when the help is shown
    counts = Counter(_row(option) for command in commands.values() for option in _options(command))
    common_rows = [row for row, count in counts.items() if count >= MIN_SHARING]
    head, mark, _ = (DOCS / "reference" / "commands.md").read_text(encoding="utf8").partition(MARK)
    lines = [NOTE, "", "## All commands", "", "| command | what it does |", "| --- | --- |"]
    lines += [f"| [`calib {name}`](#calib-{name}) | {line} |" for name, line in help_lines().items()]
    lines += ["", "## Options of several commands", "", *_table(common_rows), ""]
    return head + mark + "\n".join([*lines, *(section(name, command, common_rows) for name, command in commands.items())])


def section(name: str, command: Any, common_rows: list[str]) -> str:
    """One command: what it does, an example, its arguments and options. common_rows: The rows of options in the table above."""
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    rows = [_row(option) for option in _options(command)]
    usage = " ".join([param.metavar or param.name.upper() if param.required else f"[{param.metavar}]" for param in arguments])
    lines = [f"## calib {name}", "", *_paragraphs(command.help), "<!-- not run: how it is called -->", "", "```bash"]
    lines += [
        f"python -m spacy calib {name} {usage} [OPTIONS]",
        f"python -m spacy calib {name} {load_command(name).example}",
        "```",
        "",
    ]
    lines += ["| argument | meaning |", "| --- | --- |"]
    lines += [f"| `{param.metavar or param.name.upper()}` | {_cell(param.help)} |" for param in arguments]
    if own_rows := [row for row in rows if row not in common_rows]:
        lines += ["", *_table(own_rows)]
    if names := [row.split(" | ")[0].removeprefix("| ").split(",")[0] for row in common_rows if row in rows]:
        lines += ["", f"Also: {', '.join(names)} ([options of several commands](#options-of-several-commands))."]
    return "\n".join(lines) + "\n"


def _options(command: Any) -> list[Any]:
    return [param for param in command.params if param.param_type_name == "option" and not param.hidden]


def _row(option: Any) -> str:
    return f"| {_names(option)} | {_cell(_default(option))} | {_meaning(option)} |"


def _table(rows: list[str]) -> list[str]:
    return ["| option | default | meaning |", "| --- | --- | --- |", *rows]


def _paragraphs(text: str) -> list[str]:
    """The help, with a line for each paragraph."""
    lines: list[str] = []
    for paragraph in (text or "").replace("\b", "").split("\n\n"):
        lines += [_mark_code(" ".join(paragraph.split())), ""]
    return lines


def _names(option: Any) -> str:
    return ", ".join(
        f"`{name}`" for name in sorted([*option.opts, *option.secondary_opts], key=lambda name: not name.startswith("--"))
    )


def _default(option: Any) -> str:
    """As the help shows it: in words where there are some."""
    if isinstance(option.show_default, str):
        return option.show_default
    return "" if option.default is None or option.is_flag else str(option.default)


def _meaning(option: Any) -> str:
    choices = (option.metavar or "").strip("[]").split("|") if (option.metavar or "").startswith("[") else []
    help_text = _cell(option.help)
    return f"{help_text} ({', '.join(f'`{choice}`' for choice in choices)})" if choices else help_text


def _cell(text: str | None) -> str:
    return _mark_code(" ".join((text or "").split())).replace("|", "\\|")


def _mark_code(text: str) -> str:
    """Options as code, and nothing else that Markdown could take for its own."""
    parts = text.split("`")
    parts[::2] = [_OPTION.sub(r"`\1`", part.replace("<", "\\<").replace("*", "\\*")) for part in parts[::2]]
    return "`".join(parts)


# What is public


def public_page() -> str:
    """The page that names what is public, with the lists that stand in it today."""
    lists = {
        "python": _join_names(sorted(spacy_calib.__all__)), "commands": _join_names(f"calib {name}" for name in command_names()), "attributes": _join_names(_attributes()),
        "columns": _columns(), "figures": _figures(), "configs": _configs(), "groups": _groups(),
    }  # fmt: skip
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf8")
    for name, text in lists.items():
        page = re.sub(rf"(<!-- public: {name} -->\n).*?(?=\n### |\Z)", rf"\g<1>\n{text}\n", page, flags=re.S)
    return page


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _attributes() -> list[str]:
    owners = {"Token": Underscore.token_extensions, "Span": Underscore.span_extensions, "Doc": Underscore.doc_extensions}
    names = ((owner, name) for owner, members in owners.items() for name in sorted(members))
    return [f"{owner}._.{name}" for owner, name in names if name.split("_")[0] == "calib" and not name.startswith("calib_ent")]


def _columns() -> str:
    return "\n".join(f"- {unit}: {_join_names(columns)}" for unit, columns in COLUMNS.items())


def _figures() -> str:
    lines = [f"calib_{name}" for name in (*score_names(), "gmce_per_group")]
    return f"{_join_names(lines)}, all but the last also with `_raw` at the end. Figures of entities begin with `calib_ent_`, those of other spans with `calib_span_`."


def _groups() -> str:
    """The groups of entry points by which other packages add something."""
    return _join_names(
        [*(f"spacy_{kind}" for kind in REGISTERED), *(module.ENTRY_POINTS for module in (file_readers, cli, card))]
    )


def _configs() -> str:
    """What this package registers, registry by registry."""
    factories = [point.name for point in distribution("spacy-calib").entry_points if point.group == "spacy_factories"]
    names = {"factories": factories, "scorers": ["spacy-calib.Scorer.v1"], **REGISTERED}
    return "\n".join(f"- {kind}: {_join_names(entries)}" for kind, entries in names.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="Write nothing; end with 1 where a page would change")
    options = parser.parse_args()
    old = []
    for name, text in {"reference/commands.md": page(), "reference/python.md": public_page()}.items():
        if not options.check:
            (DOCS / name).write_text(text, encoding="utf8")
        elif (DOCS / name).read_text(encoding="utf8") != text:
            old.append(name)
    if old:
        print(f"{' and '.join(old)} is not what the code says today: run `make reference`.", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
