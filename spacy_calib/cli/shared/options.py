"""Options that several commands have, each declared once. Letters mean what they mean in spaCy's own commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...errors import calib_error
from ...pipe.settings import MAPS_FOR
from .checks import check_option, check_path
from .command import argument, option

if TYPE_CHECKING:
    from ...pipe.component import Calibrator

FORMATS = ("table", "json")
TEXTS = (
    '.spacy (with gold or without), .conllu, .jsonl ({"text": ...} on each line; also .jsonl.gz), .parquet (a column text), .txt (a text on each '
    "line), or a folder of them"
)

CalibratedModel = Annotated[str, argument("MODEL", "Calibrated pipeline: package name or path")]
Gold = Annotated[
    Path,
    argument(
        "DATA", "Gold: a .spacy or .conllu file, answers that an annotation tool exported (.jsonl, .json), or a folder of them"
    ),
]
Texts = Annotated[Path, argument("DATA", f"Texts: {TEXTS}")]
FirstAttr = Annotated[str | None, option("The calib pipe with this prefix; else the first", "--attr")]
OnlyAttr = Annotated[str | None, option("Only the calib pipe with this prefix; else all of them", "--attr")]
Component = Annotated[str | None, option("Component to calibrate", "--component", "-C", show_default="tagger")]
Source = Annotated[
    str | None,
    option(
        "Read the scores that the component left with spans, tokens or docs",
        "--source",
        words=("spans", "tokens", "docs"),
        show_default="as the component is read",
    ),
]
Score = Annotated[
    str | None,
    option(
        "Where --source finds them: _.NAME (an extension), NAME (a span group, one of its attrs, or a key of Doc.user_data), cats, or a registered function; of spans more behind commas",
        "--score",
        metavar="WHERE",
        show_default="_.score; of docs cats",
    ),
]
Method = Annotated[
    str | None,
    option(
        "auto (chosen on the data), {calib_recalibrators}, or a registered name",
        "--method",
        "-m",
        metavar="NAME",
        show_default="auto; beside --groups, --scaling or --tag-offsets isotonic",
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


GoldSource = Annotated[
    str | None,
    option(
        "Score by the gold of this source of the fit (its --gold NAME=PATH), where a Doc names none (Doc._.calib_source)",
        "--gold-source",
        metavar="NAME",
    ),
]
MapFor = Annotated[
    str | None,
    option(
        "Score all texts by the map of the fit's own texts, or by the one for texts of sources that it does not know (Doc._.calib_map)",
        "--map-for",
        words=MAPS_FOR,
        show_default="by evidence, text by text",
    ),
]


def sources_of(given: Sequence[str], data: Path | None) -> dict[str, Path]:
    """Name -> where its gold lies, DATA first; {} where no source is named. given (Sequence[str]): What --gold says.

    RAISES C545: it is no NAME=PATH. C546: two sources of one name. C547: there is one source only. C056: a path that the system refuses.
    """
    found: dict[str, Path] = {}
    if given and data is not None:
        found[data.name if data.is_dir() else data.stem] = data
    for one in given:
        name, _, path = (part.strip() for part in one.partition("="))
        if not (name.isprintable() and name and path):
            raise calib_error("C545", given=one)
        if name in found:
            raise calib_error("C546", given=name)
        check_path("--gold", path)
        found[name] = Path(path)
    if len(found) == 1:
        raise calib_error("C547", given=next(iter(found)))
    return found


def go_by(pipes: Sequence[Calibrator], name: str | None, map_for: str | None) -> None:
    """Let those pipes score by the gold of a source that know it, and by a map, those that have two.

    RAISES C548: no pipe knows the source. C560: none has two maps. C056: there are no pipes.
    """
    from ...doc.gold import GoldSources

    for flag, given in (("--gold-source", name), ("--map-for", map_for)):
        check_option(flag, given is None or bool(pipes), "left out for a pipeline that is not calibrated", given)

    knowing = [pipe for pipe in pipes if name in pipe.fit_info.source_names]
    for pipe in knowing:
        pipe.gold_source = name
    for pipe in pipes if not knowing else ():
        GoldSources(pipe.name, pipe.fit_info.source_names).number(name)
    if map_for is None:
        return
    travelling = [pipe for pipe in pipes if pipe.tokens.portable is not None]
    if not travelling:
        raise calib_error("C560", name=pipes[0].name)
    for pipe in travelling:
        pipe.map_for = map_for


def sources_line(sources: Sequence[Mapping[str, Any]]) -> str:
    """Each source that a pipe was fitted on. sources (Sequence[Mapping]): See FitInfo."""
    return ", ".join(f"{one['name']} ({one['documents']:,} documents, {one['pairs']:,} pairs)" for one in sources)
