"""Options that several commands have, each declared once. Letters mean what they mean in spaCy's own commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .command import choice

FORMATS = ("table", "json")
TEXTS = (
    '.spacy (with gold or without), .conllu, .jsonl ({"text": ...} on each line; also .jsonl.gz), .parquet (a column text), .txt (a text on each '
    "line), or a folder of them"
)

CalibratedModel = Annotated[str, typer.Argument(metavar="MODEL", help="Calibrated pipeline: package name or path")]
Gold = Annotated[Path, typer.Argument(metavar="DATA", help="Gold: a .spacy or .conllu file, or a folder of them")]
Texts = Annotated[Path, typer.Argument(metavar="DATA", help=f"Texts: {TEXTS}")]
FirstAttr = Annotated[str | None, typer.Option("--attr", help="The calib pipe with this prefix; else the first")]
OnlyAttr = Annotated[str | None, typer.Option("--attr", help="Only the calib pipe with this prefix; else all of them")]
NBins = Annotated[int | None, typer.Option("--bins", "-b", help="Adaptive bins; else those of the fit", show_default="10")]
NGroups = Annotated[
    int | None, typer.Option("--groups", help="Judge by this many tag frequency groups; else by those of the fit")
]
Component = Annotated[str | None, typer.Option("--component", "-C", help="Component to calibrate", show_default="tagger")]
Source = Annotated[
    str | None,
    choice(
        ("spans", "tokens", "docs"),
        "--source",
        help="Read the scores that the component left with spans, tokens or docs",
        show_default="as the component is read",
    ),
]
Score = Annotated[
    str | None,
    typer.Option(
        "--score",
        metavar="WHERE",
        help="Where --source finds them: _.NAME (an extension), NAME (of a span group's attrs, or of Doc.user_data), cats, or a registered function",
        show_default="_.score; of docs cats",
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="auto (chosen on the data), {calib_recalibrators}, or a registered name",
        show_default="auto; beside --groups, --scaling or --tag-offsets isotonic",
    ),
]
Groups = Annotated[int | None, typer.Option("--groups", help="Tag frequency groups; 1 pools all tags", show_default="5")]
Scaling = Annotated[
    str | None,
    typer.Option(
        "--scaling", "-S", metavar="NAME", help="Weigh a token's tags anew first: {calib_scalings}, or a registered name"
    ),
]
TagOffsets = Annotated[bool, typer.Option("--tag-offsets", help="Correct each tag by itself too, pooled towards its group")]
Threshold = Annotated[float | None, typer.Option("--threshold", help="Scores below it take no part", show_default="0.01")]
LabelMap = Annotated[
    str | None,
    typer.Option(
        "--map",
        help="The component's labels in the words of the data: PERSON=PER,GPE=LOC,DATE= or a .json or .tsv file",
    ),
]
NewAttr = Annotated[
    str | None, typer.Option("--attr", help="Name of the pipe and prefix of its attributes", show_default="calib")
]
Format = Annotated[str, choice(FORMATS, "--format", help="What is printed")]
GoldPreproc = Annotated[bool, typer.Option("--gold-preproc", "-G", help="Use gold sentences and tokens")]
DocKey = Annotated[
    str | None,
    typer.Option("--doc-key", help="Key of Doc.user_data that names the document of the source", show_default="calib_document"),
]
NProcess = Annotated[int, typer.Option("--n-process", help="Worker processes")]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="text=NAME,id=NAME",
        help="Columns of Parquet, or keys of JSON Lines, that hold the text, and its own id where it has one",
        show_default="text=text,id=id",
    ),
]
RawCells = Annotated[
    bool,
    typer.Option(
        "--raw-cells",
        help="In CSV, leave cells as they are that begin with = + - @; else these get an apostrophe, for spreadsheets",
    ),
]
GpuId = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID or -1 for CPU")]
Code = Annotated[Path | None, typer.Option("--code", "-c", help="Python file with registered functions")]
Force = Annotated[bool, typer.Option("--force", "-F", help="Replace a pipeline at OUTPUT")]
ForceFile = Annotated[bool, typer.Option("--force", "-F", help="Replace a file at --output")]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="FILE", help="Key that the statistics were collected with; with DATA, of the salt of digests"
    ),
]
Silent = Annotated[bool, typer.Option("--silent", help="Print nothing but errors")]
