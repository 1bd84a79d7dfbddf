"""Arguments and options that several commands share. Letters, such as -o, mean the same as in spaCy's own commands."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from ...errors import calib_error
from ...pipe.factory import PipeSettings
from .command import MORE_OPTIONS, CalibCommand, argument, option

FORMATS = ("table", "json")

CalibratedModel = Annotated[str, argument("MODEL", "Calibrated pipeline: package name or path")]
_GOLD_HELP = "Gold: a .spacy or .conllu file, an export of an annotation tool (.jsonl, .json), or a folder of them"
Gold = Annotated[Path, argument("DATA", _GOLD_HELP)]
_TEXTS_HELP = (
    'Texts: .spacy (with or without gold), .conllu, .jsonl (one {"text": ...} per line; also .jsonl.gz), .csv or .parquet '
    "(a column text), .txt (one text per line), or a folder of them"
)
Texts = Annotated[Path, argument("DATA", _TEXTS_HELP)]
_CHOSEN_HELP = "Calibrated component to use, or prefix of its pipe"
ChosenComponent = Annotated[str | None, option(_CHOSEN_HELP, "-C", show_default="the one that the data are about")]
_ONLY_HELP = "Use only this calibrated component, or the pipe with this prefix (default: all)"
OnlyComponent = Annotated[str | None, option(_ONLY_HELP, "-C")]
_MAP_HELP = (
    "Map labels of the component to labels of the gold: PERSON=PER,GPE=LOC,DATE= (empty if the gold has no such label), "
    "or a .json or .tsv file"
)
LabelMap = Annotated[str | None, option(_MAP_HELP, "--map")]
Format = Annotated[str, option("Format of the printed result", "--format", words=FORMATS)]
GoldPreproc = Annotated[bool, option("Use the tokens and sentences of the gold, not those of the pipeline", "-G")]
NProcess = Annotated[int, option("Worker processes", "--n-process")]
_COLUMNS_HELP = "Columns of Parquet, or keys of JSON Lines, with the texts and their ids"
Columns = Annotated[str | None, option(_COLUMNS_HELP, "--columns", metavar="text=NAME,id=NAME", show_default="text=text,id=id")]
AllowUnknown = Annotated[bool, option("Continue even if the component knows few of the gold labels")]
GpuId = Annotated[int, option("GPU ID or -1 for CPU", "--gpu-id", "-g")]
Code = Annotated[Path | None, option("Python file with registered functions", "--code", "-c")]
Force = Annotated[bool, option("Replace a pipeline at OUTPUT", "--force", "-F")]
ForceFile = Annotated[bool, option("Replace a file at --output", "--force", "-F")]
Silent = Annotated[bool, option("Print nothing but errors", "--silent")]

# A dotted setting of the command line: --components.calib.threshold, perhaps with =VALUE.
_DOTTED = re.compile(r"--[^=\s]+\.[^=\s]+(=.*)?", re.DOTALL)


class WithOverrides(CalibCommand):
    """A command that accepts dotted settings anywhere. Other unknown options are errors, unlike in `spacy train`."""

    more_options = ("--components",)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Store dotted settings in `ctx` as `overrides`; let typer parse the rest. RAISES C083: a pipe setting without dots."""
        plain_arguments, settings = split_overrides(args)
        ctx.meta[MORE_OPTIONS] = {"overrides": settings}
        try:
            return super().parse_args(ctx, plain_arguments)
        except Exception as error:  # not `click.ClickException`: typer may have a click of its own
            name = getattr(error, "option_name", "").lstrip("-").replace("-", "_")
            if name in PipeSettings.__dataclass_fields__:
                raise calib_error("C083", option=f"--{name}", setting=f"--components.calib.{name}") from None
            raise


def split_overrides(args: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Split the words of a command line into (words without dotted settings, {"components.calib.KEY": value}).

    A value is parsed as JSON, else taken as text; a setting without a value is true. Unlike in spaCy, no float is rounded.
    """
    plain_arguments: list[str] = []
    settings: dict[str, Any] = {}
    remaining = list(args)
    while remaining:
        argument = remaining.pop(0)
        if argument == "--":  # only arguments follow
            return [*plain_arguments, argument, *remaining], settings
        if not _DOTTED.fullmatch(argument):
            plain_arguments.append(argument)
            continue
        setting, equals, value = argument.removeprefix("--").partition("=")
        if not equals:
            value = remaining.pop(0) if remaining and not remaining[0].startswith("--") else "true"
        try:
            settings[setting] = json.loads(value, parse_constant=str)  # NaN and Infinity are no values of a config
        except (RecursionError, ValueError):
            settings[setting] = value
    return plain_arguments, settings
