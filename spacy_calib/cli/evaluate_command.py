"""`spacy calib evaluate`: how true scores are on gold data, as tables and numbers; plug-ins write pages and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from .evaluating.evaluation import Evaluation, evaluate_pipeline
from .evaluating.options import EvaluateRun
from .evaluating.outputs import option_functions
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
from .shared.writing import print_json, write_json

OUTPUT_HELP = (
    "File for the result, by suffix: .json the numbers; with plug-ins .html a page, .png, .svg or .pdf a picture; a folder gets all pictures "
    "(may be repeated)"
)
COMPONENT_HELP = "Judge this component, by its raw scores where it is not calibrated"
BY_HELP = (
    "Judge by itself, too, each part of the data whose documents share a value of this key, as genre or year: of Doc.user_data, or a "
    "function of calib_keys"
)
AGAINST_HELP = "Another pipeline, calibrated or not: is it better on this gold, and where is it worse?"
GROUPS_HELP = "Judge by this many groups of about equally frequent tags; else by those of the fit"
Component = Annotated[
    str | None, option(COMPONENT_HELP, "-C", show_default="all fitted pipes; where there is none, the tagger")
]
Bins = Annotated[
    int | None, option("Number of bins, of equally many scores each; else that of the fit", "-b", show_default="10")
]


@command(example="./calibrated test.spacy -o page.html -o curve.png -o numbers.json", added=option_functions)
def evaluate(
    model: CalibratedModel,
    data: Gold,
    *,
    output: Annotated[list[Path] | None, option(OUTPUT_HELP, "-o")] = None,
    attr: OnlyAttr = None,
    component: Component = None,
    bins: Bins = None,
    by: Annotated[str | None, option(BY_HELP, metavar="KEY")] = None,
    against: Annotated[str | None, option(AGAINST_HELP, metavar="OTHER")] = None,
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
    **added_options: Any,
) -> dict[str, Any]:
    """
    Show on gold how true the calibrated probabilities of a pipeline are (of those of .9, are nine in ten right?): how far raw
    and calibrated scores are off, over all tags and by group, with 95 % intervals by document, beside what exactly true scores
    would show on so little data (the floor). --output writes the same as numbers, as a page that opens offline and tells it in
    words, or as pictures.

    Of a pipeline that is not calibrated yet it shows how true its raw scores are.

    RETURNS (dict): By pipe name, see `metrics.table.calibration_table`; "entities" holds the same for whole entities, "events" what event
        pipes say of whole units (see `pipe.evaluation.event_table`), "misaligned" how many tokens align with no single gold token;
        what each slice of --by shows stands under "slices" of a pipe, and of its entities (see `metrics.slices.SliceTable`); how the pipeline
        of --against compares, "against" (see `Comparison`); what writers add, under a name of theirs; "conventions" is as in `FitInfo`, None
        where it is not known. Of raw scores calibrated figures are None, and "unfitted" holds the "verdict" and the command for a "fit".
    RAISES CalibError: every fault of the input.
    """
    run = EvaluateRun(**locals())
    evaluation = evaluate_pipeline(run)
    for request in run.requests:
        if request.paths:
            evaluation.add(request.write(evaluation))
    for path in run.numbers:
        write_json(path, evaluation.tables)
    if not run.silent:
        _show(evaluation)
    return evaluation.tables


def _show(evaluation: Evaluation) -> None:
    """Print the numbers as JSON, or as tables, and after them what is of no pipe."""
    if evaluation.run.format == "json":
        print_json(evaluation.tables)
        return
    for name, table in evaluation.tables.items():
        show_table(name, table, [section for section in evaluation.sections if section.pipe == name])
    for section in evaluation.sections:
        if not section.pipe and section.show is not None:
            section.show(section.rows, "")
