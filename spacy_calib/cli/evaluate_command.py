"""`spacy calib evaluate`: how well scores are calibrated on gold, as tables, numbers, a page and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from . import from_plugin
from .evaluating.evaluation import evaluate_pipeline
from .evaluating.options import NUMBERS, PAGE, PICTURE, PICTURE_KINDS, EvaluateRun, picture_files
from .evaluating.tables import show_tables
from .shared.command import command, option
from .shared.options import CalibratedModel, Code, ForceFile, Format, Gold, GoldPreproc, GpuId, LabelMap, NProcess, Silent
from .shared.screen import msg
from .shared.writing import print_json, write_json

OUTPUT_HELP = "Result: .json (numbers), .html (page), .png, .svg, .pdf (picture) or a folder (all pictures); may be repeated"
ALL_HELP = "Print all columns: also the debiased error, and the 95 % quantile of the floor"
COMPONENT_HELP = "Component to evaluate, by its raw scores if it is not calibrated"
BY_HELP = "Also evaluate each slice of documents by this key of Doc.user_data, such as genre, or by this function of calib_keys"
GROUPS_HELP = "Number of groups of about equally frequent tags (default: the groups of the fit)"
Component = Annotated[str | None, option(COMPONENT_HELP, "-C", show_default="all fitted pipes; without any, the tagger")]
KIND_DEFAULT = "reliability; all for a folder, none with --tag"
Kind = Annotated[str | None, option("Picture to draw", "-k", words=(*PICTURE_KINDS, "all"), show_default=KIND_DEFAULT)]
Tags = Annotated[list[str] | None, option("Draw a picture for this tag; may be repeated", "--tag", "-T")]


@command(example="./calibrated test.spacy -o page.html -o curve.png -o numbers.json")
def evaluate(
    model: CalibratedModel,
    data: Gold,
    *,
    output: Annotated[list[Path] | None, option(OUTPUT_HELP, "-o")] = None,
    component: Component = None,
    by: Annotated[str | None, option(BY_HELP, metavar="KEY")] = None,
    groups: Annotated[int | None, option(GROUPS_HELP)] = None,
    label_map: LabelMap = None,
    kind: Kind = None,
    tags: Tags = None,
    everything: Annotated[bool, option(ALL_HELP, "--all")] = False,
    format: Format = "table",
    gold_preproc: GoldPreproc = False,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Show on gold how well the probabilities of a pipeline are calibrated: are nine in ten of the labels scored .9 right? The
    table has the calibration errors of raw and calibrated scores, over all tags and by group, with 95 % intervals from a
    bootstrap of documents, and the floor: the error that perfectly calibrated scores would show on so little data. --output
    writes the same as numbers, as a page that opens offline, or as pictures.

    For a pipeline that is not calibrated yet, only the errors of its raw scores are shown.

    RETURNS (dict): Pipe name -> counts, errors by group and metrics of raw and calibrated scores (`calibration_table`), with
        "entities": the same for whole entities; "misaligned": number of "tokens", and of these "left_out", as they align with
        no single gold token; "slices": a row for each value of --by, also under "entities"; "conventions": labels that gold and
        component use differently, None if not known; "pictures": the numbers of pictures. For raw scores the calibrated figures
        are None, and "unfitted" has the "verdict" and the command for a "fit".
    RAISES CalibError: any error in the input. Arguments: the annotation of each contains its help (`shared/options.py`).
    """
    run = EvaluateRun(**locals())
    evaluation = evaluate_pipeline(run)
    tables, page = evaluation.to_dict(), None
    if run.outputs[PAGE]:
        page = from_plugin("write_page")(evaluation, run.outputs[PAGE])
    if run.has_pictures:
        pictures = from_plugin("write_pictures")(evaluation, run.outputs[PICTURE], run.kind, run.tags)
        tables[pictures["pipe"]]["pictures"] = pictures
    for path in run.outputs[NUMBERS]:
        write_json(path, tables)
    if run.format == "json" and not run.silent:
        print_json(tables)
    elif not run.silent:
        show_tables(tables, run.everything)
        show_outputs(run, page)
    return tables


def show_outputs(run: EvaluateRun, page: dict[str, Any] | None) -> None:
    """Print the verdicts of the HTML page, if any, and the files written by `run`. page (dict | None): Contents of the page."""
    if page is not None:
        from_plugin("show_verdicts")(page)
    for path in run.outputs[PAGE]:
        msg.good(f"The page is at {path}; open it in a browser.")
    for name, path in picture_files(run.outputs[PICTURE], run.kind, run.tags):
        msg.good(f"{'the tags asked for' if name == 'tags' else name}: {path}")
