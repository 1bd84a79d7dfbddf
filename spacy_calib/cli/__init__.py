"""`python -m spacy calib ...`: one command per file. Imported by every `python -m spacy`, so nothing heavy is imported here."""

import typer
from spacy.cli._util import app

from .evaluate import evaluate_cli
from .expect import expect_cli
from .fit import fit_cli
from .info import info_cli
from .plot import plot_cli
from .rank import rank_cli
from .report import report_cli
from .select import select_cli
from .stock import stock_cli
from .threshold import threshold_cli

HELP = """Calibrated probabilities for the tokens of a trained pipeline: fit them on
held-out gold, evaluate them, and look at what a fitted pipe holds.
"""

calib_cli = typer.Typer(name="calib", help=HELP, no_args_is_help=True, rich_markup_mode=None)
calib_cli.command("fit")(fit_cli)
calib_cli.command("evaluate")(evaluate_cli)
calib_cli.command("info")(info_cli)
calib_cli.command("threshold")(threshold_cli)
calib_cli.command("plot")(plot_cli)
calib_cli.command("select")(select_cli)
calib_cli.command("rank")(rank_cli)
calib_cli.command("report")(report_cli)
calib_cli.command("expect")(expect_cli)
calib_cli.command("stock")(stock_cli)
app.add_typer(calib_cli, name="calib")
