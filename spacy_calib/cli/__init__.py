"""`python -m spacy calib ...`: one command per file. Imported by every `python -m spacy`, so nothing heavy is imported here."""

from typing import Any

import typer
from spacy.cli._util import app

from ..about import __url__
from . import (
    adapt,
    audit,
    count,
    evaluate,
    expect,
    fit,
    info,
    init_config,
    rank,
    select,
    stock,
    threshold,
    view,
    watch,
)
from .shared.command import Command
from .shared.session import CalibGroup

HELP = """Calibrated probabilities for whatever a trained pipeline says of tokens, entities,
texts or trees: fit them on held-out gold, judge them, and use them. Begin with
fit.
"""


COMMANDS: dict[str, Command[Any, Any]] = {
    "fit": fit.fit,
    "adapt": adapt.adapt,
    "evaluate": evaluate.evaluate,
    "rank": rank.rank,
    "select": select.select,
    "audit": audit.audit,
    "expect": expect.expect,
    "count": count.count,
    "watch": watch.watch,
    "threshold": threshold.threshold,
    "view": view.view,
    "info": info.info,
    "init-config": init_config.init_config,
    "stock": stock.stock,
}


def epilog(command: str) -> str:
    """What ends the help: an example, and where the documentation is. (\\b keeps the lines as they are.)"""
    example = f"python -m spacy calib {command} {COMMANDS[command].example}"
    return f"\b\nExample:\n  {example}\n\n\b\nDocumentation:\n  {__url__}"


calib_cli = typer.Typer(
    cls=CalibGroup,
    name="calib",
    help=HELP,
    epilog=f"`calib COMMAND --help` has an example of each. Documentation: {__url__}",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for name, command in COMMANDS.items():
    wide = {"max_content_width": 100}
    register = calib_cli.command(name, cls=command.kind, short_help=command.does, epilog=epilog(name), context_settings=wide)
    register(command.typer_function())
app.add_typer(calib_cli, name="calib")
