"""`python -m spacy calib ...`: one command per file.

Every `python -m spacy` imports this module. It therefore imports a command only when that command is used, and contains the
line of help of each, so that `calib --help` imports none.
"""

import ast
import importlib.util
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import typer
from spacy.cli._util import app
from typer.core import TyperGroup

from ..about import __url__

if TYPE_CHECKING:
    from .shared.command import Command

HELP = """Calibrated probabilities for whatever a trained pipeline says of tokens, entities,
texts or trees: fit them on held-out gold, judge them, and use them. Begin with
fit.
"""
# Name -> line of help. The command NAME is the function NAME of the module NAME_command of this folder.
COMMANDS = {
    "fit": "Learn calibrated probabilities from held-out gold",
    "adapt": "Calibrate scores out of domain with a few labelled documents",
    "evaluate": "Show how well calibrated scores are: table, page, pictures",
    "threshold": "Find cut-offs for a precision or a recall of entities",
    "info": "Show what a calibrated pipeline was fitted with, and on what",
    "stock": "Remove the calibration from a pipeline",
}
# Entry points of plug-ins, ours and those of other packages: the name is that of the command, the value its `Command` object.
ENTRY_POINTS = "spacy_calib_commands"
# The order of use; commands that are not named here come last.
ORDER = (
    "pretrained", "fit", "adapt", "evaluate", "rank", "select", "audit", "expect", "count", "threshold", "view", "info", "stock",
)  # fmt: skip


def added_commands() -> dict[str, EntryPoint]:
    """Find the commands that other installed packages add. None of them replaces one of ours."""
    points = sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name)
    return {point.name: point for point in points if point.name not in COMMANDS}


def command_names() -> list[str]:
    """List all commands in the order of the help."""
    names = [*COMMANDS, *added_commands()]
    return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def help_lines() -> dict[str, str]:
    """Return the line of help of each command; no command is imported."""
    lines = COMMANDS | {name: first_line(point.module) for name, point in added_commands().items()}
    return {name: lines[name] for name in command_names()}


def first_line(module: str) -> str:
    """The first line of a module's docstring, from its source: a broken or slow package must not break `calib --help`."""
    name, *parts = module.split(".")
    try:
        spec = importlib.util.find_spec(name)
        for part in parts:
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, spec.submodule_search_locations)  # type: ignore[union-attr]
        source = spec.loader.get_source(name)  # type: ignore[union-attr]
        return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0].rstrip(".")
    except (AttributeError, ImportError, OSError, SyntaxError, TypeError, ValueError):
        return ""


def load_command(name: str) -> "Command[Any, Any]":
    """Import a command. RAISES KeyError: there is none of this name. C105: a package names it, but it cannot be imported."""
    from ..calibration.registered import load_point
    from ..errors import calib_error
    from .shared.command import Command

    if name in COMMANDS:
        command: Any = getattr(import_module(f".{name}_command", __package__), name)
        return command
    point, thing = added_commands()[name], f"The command `calib {name}`"
    command = load_point(point, thing)
    if not isinstance(command, Command):
        raise calib_error(
            "C105", thing=thing, value=point.value, why="it is not made by @command of spacy_calib.cli.shared.command"
        )
    return command


def click_command(name: str) -> Any:
    """Build the command as typer runs it. RAISES KeyError, C105: see `load_command`."""
    command = load_command(name)
    # \b keeps the lines as they are.
    example = f"\b\nExample:\n  python -m spacy calib {name} {command.example}"
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    register = alone.command(
        name,
        cls=command.kind,
        short_help=COMMANDS.get(name),
        epilog=f"{example}\n\n\b\nDocumentation:\n  {__url__}",
        context_settings={"max_content_width": 100},
    )
    register(command.typer_function())
    return typer.main.get_command(alone)


class LazyCommands(Mapping[str, Any]):
    """The click command of each name, built when it is looked up."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = click_command(name)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(command_names())

    def __len__(self) -> int:
        return len(command_names())


class CalibGroup(TyperGroup):
    """The group of our commands. Its help is printed inside a session too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands: Any = LazyCommands()

    def list_commands(self, ctx: Any) -> list[str]:
        return command_names()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(help_lines().items()))

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        from .shared.session import session

        with session():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        from .shared.session import session

        with session():
            return super().invoke(ctx)


def _no_command() -> None:
    """Make typer build a group; it counts only commands that are registered with it."""


calib_cli = typer.Typer(
    cls=CalibGroup,
    name="calib",
    help=HELP,
    callback=_no_command,
    epilog=f"`calib COMMAND --help` has an example of each. Documentation: {__url__}",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(calib_cli, name="calib")
