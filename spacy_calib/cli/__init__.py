"""`python -m spacy calib ...`: one command per file. Imported by every `python -m spacy`, so nothing heavy is imported here."""

from collections.abc import Callable
from inspect import get_annotations
from typing import Any, NamedTuple

import typer
from spacy.cli._util import app
from typer.core import TyperCommand

from ..about import __url__
from .evaluate import evaluate_cli
from .expect import expect_cli
from .fit import fit_cli
from .fitting.overrides import WithOverrides
from .info import info_cli
from .init_config import init_config_cli
from .plot import plot_cli
from .rank import rank_cli
from .report import report_cli
from .select import select_cli
from .shared.session import CalibGroup
from .stock import stock_cli
from .threshold import threshold_cli

HELP = """Calibrated probabilities for the tokens and entities of a trained pipeline:
fit them on held-out gold, judge them, and use them. Begin with fit.
"""


class Command(NamedTuple):
    """run: What typer calls. does (str): What the list of commands says of it. example (str): The end of a command line that works.
    kind: How its command line is read.
    """

    run: Callable[..., Any]
    does: str
    example: str
    kind: type[TyperCommand] = TyperCommand


COMMANDS = {
    "fit": Command(
        fit_cli, "Learn calibrated probabilities from held-out gold", "en_core_web_sm dev.spacy ./calibrated", WithOverrides
    ),
    "evaluate": Command(
        evaluate_cli, "Show on gold how true the probabilities are: a table", "./calibrated test.spacy --output metrics.json"
    ),
    "report": Command(report_cli, "The same as a page to read and pass on", "./calibrated test.spacy -o report.html"),
    "plot": Command(plot_cli, "The same as diagrams, PNG or SVG", "./calibrated test.spacy --output plots"),
    "rank": Command(
        rank_cli,
        "List predictions to check, the most likely wrong first",
        "./calibrated test.spacy --unit sentence --format prodigy -o queue.jsonl",
    ),
    "select": Command(
        select_cli,
        "Pick unlabelled texts to annotate next, to train on",
        "./calibrated texts.txt --by margin --max-words 2000 -o batch.jsonl",
    ),
    "expect": Command(
        expect_cli, "Tell the accuracy to be expected on texts without gold", "./calibrated texts.jsonl --per-doc"
    ),
    "threshold": Command(
        threshold_cli,
        "Find the score above which entities are right as often as asked",
        "./calibrated test.spacy --precision 0.9",
    ),
    "info": Command(info_cli, "Show what a calibrated pipeline was fitted with, and on what", "./calibrated --all"),
    "init-config": Command(
        init_config_cli,
        "Write the settings of a calib pipe as a file, for fit --config",
        "calib.cfg --method isotonic",
        WithOverrides,
    ),
    "stock": Command(stock_cli, "Turn it back into the pipeline that it was", "./calibrated ./stock"),
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
    # typer before 0.10 reads no annotation that is kept as text
    command.run.__annotations__ = get_annotations(command.run, eval_str=True)
    calib_cli.command(name, cls=command.kind, short_help=command.does, epilog=epilog(name))(command.run)
app.add_typer(calib_cli, name="calib")
