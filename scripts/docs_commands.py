"""Writes docs/reference/commands.md: every command of `python -m spacy calib`, its arguments and its options, read from the command line itself.

python scripts/docs_commands.py           write the page
python scripts/docs_commands.py --check   end with 1 where the page is not what would be written
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import typer

from spacy_calib.cli import COMMANDS, calib_cli

_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w.-]*\w)")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"
BEGINNING = """# Commands

<!-- Written by scripts/docs_commands.py (`make reference`) from the command line itself: change the help of the command, not this page. -->

What `python -m spacy calib COMMAND --help` says of each command. What they have in common is on [another page](command-line.md).

| command | what it does |
| --- | --- |
"""


def page() -> str:
    """The page as Markdown."""
    group: Any = typer.main.get_command(calib_cli)
    rows = [f"| [`calib {name}`](#calib-{name}) | {COMMANDS[name].does} |" for name in group.commands]
    return BEGINNING + "\n".join(rows) + "\n\n" + "\n".join(section(name, command) for name, command in group.commands.items())


def section(name: str, command: Any) -> str:
    """One command: what it does, an example, its arguments and options."""
    context = typer.Context(command, info_name=name)
    command.format_help(context, context.make_formatter())  # the registries are asked when the help is shown
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    usage = " ".join([one.metavar or one.name.upper() if one.required else f"[{one.metavar}]" for one in arguments])
    lines = [f"## calib {name}", "", *_paragraphs(command.help), "<!-- not run: how it is called -->", "", "```bash"]
    lines += [
        f"python -m spacy calib {name} {usage} [OPTIONS]",
        f"python -m spacy calib {name} {COMMANDS[name].example}",
        "```",
        "",
    ]
    lines += ["| argument | meaning |", "| --- | --- |"]
    lines += [f"| `{one.metavar or one.name.upper()}` | {_cell(one.help)} |" for one in arguments]
    lines += ["", "| option | default | meaning |", "| --- | --- | --- |"]
    lines += [f"| {_names(one)} | {_cell(_default(one))} | {_meaning(one)} |" for one in options]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> list[str]:
    """The help, with a line for each paragraph."""
    found: list[str] = []
    for paragraph in (text or "").replace("\b", "").split("\n\n"):
        found += [_marked(" ".join(paragraph.split())), ""]
    return found


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
    said = _cell(option.help)
    return f"{said} ({', '.join(f'`{choice}`' for choice in choices)})" if choices else said


def _cell(text: str | None) -> str:
    return _marked(" ".join((text or "").split())).replace("|", "\\|")


def _marked(text: str) -> str:
    """Options as code, and nothing else that Markdown could take for its own."""
    parts = text.split("`")
    parts[::2] = [_OPTION.sub(r"`\1`", part.replace("<", "\\<").replace("*", "\\*")) for part in parts[::2]]
    return "`".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="Write nothing; end with 1 where the page would change")
    parser.add_argument("--output", type=Path, default=PAGE, help="The page")
    options = parser.parse_args()
    if not options.check:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(page(), encoding="utf8")
        return 0
    if options.output.read_text(encoding="utf8") == page():
        return 0
    print(f"{options.output.name} is not what the command line says today: run `make reference`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
