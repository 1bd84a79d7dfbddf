"""Options and arguments that several commands have, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Calibrated = Annotated[str, typer.Argument(..., help="Calibrated pipeline: package name or path")]
Gold = Annotated[Path, typer.Argument(..., help="Gold: a .spacy file or a folder of them")]
FirstAttr = Annotated[str | None, typer.Option("--attr", help="The calib pipe with this prefix; else the first")]
OnlyAttr = Annotated[str | None, typer.Option("--attr", help="Only the calib pipe with this prefix; else all of them")]
NBins = Annotated[int | None, typer.Option("--bins", "-b", help="Adaptive bins; else those of the fit", show_default="10")]
NGroups = Annotated[
    int | None,
    typer.Option("--groups", "-G", help="Judge by this many tag frequency groups; else by those of the fit"),
]
FloorSeed = Annotated[int, typer.Option("--seed", help="Seed of the simulated noise floor and intervals")]
Format = Annotated[str, typer.Option("--format", help="What is printed: table or json")]
GoldPreproc = Annotated[bool, typer.Option("--gold-preproc", help="Use gold sentences and tokens")]
NProcess = Annotated[int, typer.Option("--n-process", help="Worker processes")]
GpuId = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID or -1 for CPU")]
Code = Annotated[Path | None, typer.Option("--code", help="Python file with registered functions")]
Force = Annotated[bool, typer.Option("--force", "-F", help="Replace a pipeline at OUTPUT")]
Silent = Annotated[bool, typer.Option("--silent", help="Print nothing but errors")]
