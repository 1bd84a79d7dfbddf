"""Options that several commands have, each declared once. Letters mean what they mean in spaCy's own commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .checks import METHODS
from .command import argument, option

FORMATS = ("table", "json")

CalibratedModel = Annotated[str, argument("MODEL", "Calibrated pipeline: package name or path")]
Gold = Annotated[
    Path,
    argument(
        "DATA", "Gold: a .spacy or .conllu file, answers that an annotation tool exported (.jsonl, .json), or a folder of them"
    ),
]
Texts = Annotated[
    Path,
    argument(
        "DATA",
        'Texts: .spacy (with gold or without), .conllu, .jsonl ({"text": ...} on each line; also .jsonl.gz), .parquet (a column text), .txt '
        "(a text on each line), or a folder of them",
    ),
]
FirstAttr = Annotated[str | None, option("The calib pipe with this prefix; else the first", "--attr")]
OnlyAttr = Annotated[str | None, option("Only the calib pipe with this prefix; else all of them", "--attr")]
Component = Annotated[str | None, option("Component to calibrate", "--component", "-C", show_default="tagger")]
Method = Annotated[
    str | None,
    option(
        f"auto (chosen on the data), {METHODS}, or a registered name",
        "--method",
        "-m",
        metavar="NAME",
        show_default="auto; beside --groups isotonic",
    ),
]
LabelMap = Annotated[
    str | None,
    option(
        "What the data call the component's labels: PERSON=PER,GPE=LOC,DATE= (nothing for one that they lack), or a .json or .tsv file",
        "--map",
    ),
]
Format = Annotated[str, option("What is printed", "--format", words=FORMATS)]
GoldPreproc = Annotated[
    bool, option("Use the tokens and sentences of the gold, not those of the pipeline", "--gold-preproc", "-G")
]
DocKey = Annotated[
    str | None,
    option("Key of Doc.user_data that names the document of which a Doc is a part", "--doc-key", show_default="calib_document"),
]
NProcess = Annotated[int, option("Worker processes", "--n-process")]
Columns = Annotated[
    str | None,
    option(
        "Columns of Parquet, or keys of JSON Lines, that hold the text, and its own id where it has one",
        "--columns",
        metavar="text=NAME,id=NAME",
        show_default="text=text,id=id",
    ),
]
RawCells = Annotated[
    bool,
    option(
        "In CSV, leave cells as they are that begin with = + - @; else these get an apostrophe, for spreadsheets", "--raw-cells"
    ),
]
AllowUnknown = Annotated[bool, option("Go on even if the component knows few of the gold labels")]
GpuId = Annotated[int, option("GPU ID or -1 for CPU", "--gpu-id", "-g")]
Code = Annotated[Path | None, option("Python file with registered functions", "--code", "-c")]
Force = Annotated[bool, option("Replace a pipeline at OUTPUT", "--force", "-F")]
ForceFile = Annotated[bool, option("Replace a file at --output", "--force", "-F")]
Silent = Annotated[bool, option("Print nothing but errors", "--silent")]
