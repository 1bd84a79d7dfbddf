"""`python -m spacy calib ...`: the group of commands, one command per file.

Every `python -m spacy` imports this module, so it must be fast: a command is imported when it is used, and this module has the
help lines of the core's commands, so that `calib --help` imports no command.
"""

import ast
import importlib.util
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from spacy.cli import app
from typer.core import TyperGroup

from ..about import __url__

HELP = """Calibrated confidence for the entities and tags of spaCy pipelines. No gold
(labels that people checked)? Begin with pretrained. Some gold? Begin with fit.
"""
# Name -> (its module, its line of help), in the order of the help. The command is the function NAME of the module.
_REVIEW, _REPORT = "..plugins.review", "..plugins.report"
OURS = {
    "pretrained": ("..plugins.pretrained.pretrained_command", "Calibrate stock pipelines without gold"),
    "fit": (".fit_command", "Learn calibrated probabilities from held-out gold"),
    "evaluate": (".evaluate_command", "Show how well scores are calibrated: table, page, pictures"),
    "threshold": (".threshold_command", "Find cut-offs for a precision or a recall of entities"),
    "rank": (f"{_REVIEW}.rank_command", "List predictions to check, the most likely wrong first"),
    "audit": (f"{_REVIEW}.audit_command", "Find gold labels that are probably wrong"),
    "adapt": (".adapt_command", "Adapt a calibration to a new domain with a few documents"),
    "expect": ("..plugins.expect.expect_command", "Estimate the accuracy on new texts from their scores"),
    "view": (f"{_REPORT}.view_command", "Show texts in the browser, shaded by doubt"),
    "info": (".info_command", "Show the settings and the fit data of a calibrated pipeline"),
    "stock": (".stock_command", "Remove the calibration from a pipeline"),
}
OF_PLUGINS = {  # function of a plug-in that commands of the core call -> its module
    "all_cards": "..plugins.pretrained.card",
    "show_verdicts": f"{_REPORT}.page_contents",
    "write_page": f"{_REPORT}.page_contents",
    "write_pictures": f"{_REPORT}.pictures",
}
COMMANDS = {name: line for name, (_, line) in OURS.items()}
# Group of entry points by which other packages add commands: name of a command -> a function decorated with @command.
ENTRY_POINTS = "spacy_calib_commands"


def from_plugin(name: str) -> Any:
    """Import a plug-in of this package, and return its function `name`, a key of OF_PLUGINS."""
    return getattr(import_module(OF_PLUGINS[name], __package__), name)


def added_commands() -> dict[str, EntryPoint]:
    """Return command name -> entry point of the commands that other packages add, except those named like one of the core."""
    points = sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name)
    return {point.name: point for point in points if point.name not in COMMANDS}


def command_names() -> list[str]:
    """Return the names of all commands in the order of the help: the core's, then those of other packages by name."""
    return [*OURS, *added_commands()]


def help_lines() -> dict[str, str]:
    """Return command name -> help line. No command is imported for that."""
    return COMMANDS | {name: first_line(point.module) for name, point in added_commands().items()}


def first_line(module: str) -> str:
    """Return the first line of the docstring of a module ("a.b"), without its final dot; "" if it cannot be found or parsed."""
    # The source is parsed: `calib --help` must not import a broken or slow package. (find_spec("a.b") would import a.)
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


def load_command(name: str) -> Any:
    """Import and return the function of the command `name`. RAISES KeyError: no such command. C105: a plug-in is unusable."""
    from ..errors import calib_error
    from ..registry import load_point

    if name in COMMANDS:
        module, _ = OURS[name]
        return getattr(import_module(module, __package__), name)
    point = added_commands()[name]
    name_in_messages = f"The command `calib {name}`"
    command = load_point(point, name_in_messages)
    if not hasattr(command, "example"):
        why = "it is not made by @command of spacy_calib.cli.shared.command"
        raise calib_error("C105", thing=name_in_messages, value=point.value, why=why)
    return command


def click_command(name: str) -> Any:
    """Build the click command `name`. RAISES KeyError: there is none. C105: the function of a plug-in is unusable."""
    from .shared.command import typer_function

    command = load_command(name)
    # The character \b keeps click from wrapping the lines that follow.
    example = f"\b\nExample:\n  python -m spacy calib {name} {command.example}"
    command_app = typer.Typer(rich_markup_mode=None, add_completion=False)
    register = command_app.command(
        name,
        cls=command.kind,
        short_help=COMMANDS.get(name),
        epilog=f"{example}\n\n\b\nDocumentation:\n  {__url__}",
        context_settings={"max_content_width": 100},
    )
    register(typer_function(command))
    return typer.main.get_command(command_app)


class LazyCommands(Mapping[str, Any]):
    """A mapping from the name of each command to its click command, which is built at the first look-up."""

    def __init__(self) -> None:
        self._commands: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._commands:
            self._commands[name] = click_command(name)
        return self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(command_names())

    def __len__(self) -> int:
        return len(command_names())


class CalibGroup(TyperGroup):
    """The click group `calib`. It parses and runs commands inside `command_process`, which prints errors as sentences."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands: Any = LazyCommands()

    def list_commands(self, ctx: Any) -> list[str]:
        return command_names()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(help_lines().items()))

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the command line inside `command_process`: errors are printed as sentences, and SIGTERM exits cleanly."""
        from .shared.process import command_process  # here, not at import: other commands of spaCy import this module, too

        with command_process():  # ends with the block; `invoke`, which click calls next, starts it again
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run the parsed command inside `command_process`. Click calls this after `make_context` has left it."""
        from .shared.process import command_process

        with command_process():
            return super().invoke(ctx)


def _no_command() -> None:
    """Do nothing. With this callback typer builds a group, though no command is registered with it."""


calib_cli = typer.Typer(
    cls=CalibGroup,
    name="calib",
    help=HELP,
    callback=_no_command,
    epilog=f"`calib COMMAND --help` shows an example. Documentation: {__url__}",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(calib_cli, name="calib")
