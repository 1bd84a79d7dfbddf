"""`spacy calib evaluate`: how true scores are on gold data, as tables, numbers, a page and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ..plugins.report.page_contents import page_contents, picture_numbers, picture_title, show_verdicts, write_pictures
from ..plugins.report.show_slices import found_slices, slices_of
from .evaluating.against import check_against, compared
from .evaluating.evaluation import Judgement, judgement, table_of_unit
from .evaluating.options import KINDS, UNITS, EvaluateRun, kind_of
from .evaluating.tables import show_table
from .shared.command import command, option
from .shared.options import (
    AllTypes,
    CalibratedModel,
    Code,
    DocKey,
    ForceFile,
    Format,
    Gold,
    GoldPreproc,
    GpuId,
    LabelMap,
    NProcess,
    OnlyAttr,
    Silent,
)
from .shared.screen import msg
from .shared.writing import print_json, write_json, write_text

OUTPUT_HELP = (
    "File for the result, by suffix: .json the numbers, .html a page, .png, .svg or .pdf a picture; a folder gets all pictures "
    "(may be repeated)"
)
COMPONENT_HELP = "Judge this component, by its raw scores where it is not calibrated"
BY_HELP = (
    "Judge by itself, too, each part of the data whose documents share a value of this key, as genre or year: of Doc.user_data, or a "
    "function of calib_keys"
)
AGAINST_HELP = "Another pipeline, calibrated or not: is it better on this gold, and where is it worse?"
GROUPS_HELP = "Judge by this many groups of about equally frequent tags; else by those of the fit"
Kind = Annotated[
    str | None,
    option("Which picture", "-k", words=(*KINDS, "all"), show_default="reliability; in a folder all, beside --tag none"),
]
Unit = Annotated[
    str | None,
    option("What pictures are of", "-u", words=tuple(UNITS), show_default="entity or document where the pipe scores them"),
]
Component = Annotated[
    str | None, option(COMPONENT_HELP, "-C", show_default="all fitted pipes; where there is none, the tagger")
]
Bins = Annotated[
    int | None, option("Number of bins, of equally many scores each; else that of the fit", "-b", show_default="10")
]


@command(example="./calibrated test.spacy -o report.html -o curve.png -o numbers.json")
def evaluate(
    model: CalibratedModel,
    data: Gold,
    *,
    output: Annotated[list[Path] | None, option(OUTPUT_HELP, "-o")] = None,
    kind: Kind = None,
    tags: Annotated[list[str] | None, option("A picture of this tag (may be repeated)", "--tag", "-T")] = None,
    unit: Unit = None,
    attr: OnlyAttr = None,
    component: Component = None,
    bins: Bins = None,
    by: Annotated[str | None, option(BY_HELP, metavar="KEY")] = None,
    against: Annotated[str | None, option(AGAINST_HELP, metavar="OTHER")] = None,
    find_slices: Annotated[bool, option("Search for parts of the data whose scores are off")] = False,
    groups: Annotated[int | None, option(GROUPS_HELP)] = None,
    label_map: LabelMap = None,
    all_types: AllTypes = False,
    format: Format = "table",
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Show on gold how true the calibrated probabilities of a pipeline are (of those of .9, are nine in ten right?): how far raw
    and calibrated scores are off, over all tags and by group, with 95 % intervals by document, beside what exactly true scores
    would show on so little data (the floor). --output writes the same as numbers, as a page that opens offline and tells it in
    words, or as pictures.

    Of a pipeline that is not calibrated yet it shows how true its raw scores are.

    RETURNS (dict): By pipe name, see `metrics.table.calibration_table`; "entities" holds the same for whole entities, "events" what event
        pipes say of whole units (see `pipe.evaluation.event_table`), "misaligned" how many tokens align with no single gold token;
        what each slice of --by shows stands under "slices" of a pipe, and of its entities (see `metrics.slices.judge_slices`), those of
        --find-slices under "found_slices", with "examples"; how the pipeline of --against compares, "against", with the rows of
        `metrics.paired`; "pictures"
        the numbers in pictures of the first pipe (see `picture_numbers`), where some are asked for; "conventions" is as in `FitInfo`, None
        where it is not known. Of raw scores calibrated figures are None,
        and "unfitted" holds the "verdict" and the command for a "fit".
    RAISES CalibError: every fault of the input.
    """
    run = EvaluateRun(
        model, data, output=output or [], kind=kind, tags=tags or [], unit=unit, attr=attr, component=component, bins=bins, by=by,
        against=against, find_slices=find_slices, groups=groups, format=format, gold_preproc=gold_preproc, doc_key=doc_key,
        n_process=n_process, gpu_id=gpu_id, code=code, force=force, silent=silent, label_map=label_map, all_types=all_types,
    )  # fmt: skip
    names = list(dict.fromkeys([name for name, _ in run.pictures] or run.names()))
    found, result = _judged(run, shown=bool(run.pages or names))
    contents = _write_page(found, result, run) if run.pages else None
    if names:
        numbers = picture_numbers(found, result, names, run)
        if run.pictures:
            write_pictures(numbers, run.pictures, picture_title(found, numbers, run))
        result[numbers["pipe"]]["pictures"] = numbers
    _deliver(run, result, contents)
    return result


def page(run: EvaluateRun) -> dict[str, Any]:
    """All that the page of a run shows, which is written where one is asked for. RAISES CalibError: every fault of the input."""
    found, tables = _judged(run, shown=True)
    return _write_page(found, tables, run)


def _judged(run: EvaluateRun, shown: bool) -> tuple[Judgement, dict[str, Any]]:
    """What was judged, and the table of each pipe. shown (bool): See `judgement`."""
    check_against(run)
    found = judgement(run, shown or run.by is not None or run.find_slices)
    tables = found.tables(run)
    more = ((run.against, "against", compared), (run.by, "slices", slices_of), (run.find_slices, "found_slices", found_slices))
    for asked, key, tell in more:
        for (name, unit), told in tell(found, run).items() if asked else ():
            table_of_unit(tables[name], unit)[key] = told
    return found, tables


def _write_page(found: Judgement, tables: dict[str, Any], run: EvaluateRun) -> dict[str, Any]:
    """RETURNS (dict): What it shows. RAISES C005, C030: there is too little to judge. C055: a file cannot be written."""
    contents = page_contents(found, tables, run)
    if run.pages:
        from ..plugins.report.page import render_report

        text = render_report(contents)
        for path in run.pages:
            write_text(path, text)
    return contents


def _deliver(run: EvaluateRun, result: dict[str, Any], contents: dict[str, Any] | None) -> None:
    """Write the numbers, and print them, as JSON or as tables. contents (dict | None): Of the page."""
    for path in run.output:
        if kind_of(path) == "numbers":
            write_json(path, result)
    if run.silent:
        return
    if run.format == "json":
        print_json(result)
        return
    for name, table in result.items():
        show_table(name, table)
    if contents is not None:
        show_verdicts(contents)
    for path in run.pages:
        msg.good(f"The page is at {path}; open it in a browser.")
    for name, path in run.pictures:
        msg.good(f"{'the tags asked for' if name == 'tags' else name}: {path}")
