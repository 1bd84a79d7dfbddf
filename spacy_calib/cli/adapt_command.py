"""`spacy calib adapt`: a few labelled documents of a new kind of text make the scores true there."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..annotations import get_annotation
from .fitting.adapt_output import show_adaptation
from .fitting.new_calib import ready_to_read
from .fitting.settings import MAX_UNKNOWN
from .shared.command import argument, command
from .shared.evidence import check_gold_of_examples, check_whole_documents, report_dropped
from .shared.options import (
    AllowUnknown,
    AllTypes,
    CalibratedModel,
    ChosenAttr,
    ChosenComponent,
    Code,
    DocKey,
    Force,
    Format,
    GoldPreproc,
    GpuId,
    LabelMap,
    NProcess,
    Silent,
)
from .shared.outputs import Output
from .shared.run import GoldRun
from .shared.score_readers import follow_readers, show_means
from .shared.writing import print_json

if TYPE_CHECKING:
    from ..pipe.component import Calibrator


DATA_HELP = (
    "5 to 50 labelled documents of the new kind: a .spacy or .conllu file, answers that an annotation tool exported (.jsonl, .json), "
    "or a folder of them"
)


@command(example="./calibrated tweets.spacy ./adapted")
def adapt(
    model: CalibratedModel,
    data: Annotated[Path, argument("DATA", DATA_HELP)],
    output: Annotated[Path, argument("OUTPUT", "Folder to write the adapted pipeline to")],
    *,
    component: ChosenComponent = None,
    attr: ChosenAttr = None,
    label_map: LabelMap = None,
    all_types: AllTypes = False,
    allow_unknown: AllowUnknown = False,
    format: Format = "table",
    force: Force = False,
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    silent: Silent = True,
) -> Calibrator:
    """
    Adapt a calibrated pipeline to a new kind of text with 5 to 50 labelled documents of it, and write the whole pipeline to
    OUTPUT. The fitted maps stay; what is learned on top of them is as much as the documents tell, and nothing where the scores
    are true already. Can be done again.

    RETURNS (Calibrator): The adapted pipe; `fit_info.adaptations` says what it learned.
    RAISES CalibError: every fault of the input.
    """
    from .shared.writing import write_pipeline

    how: dict[str, Any] = {"gold_preproc": gold_preproc, "doc_key": doc_key, "n_process": n_process, "gpu_id": gpu_id}
    names: dict[str, Any] = {"attr": attr, "component": component, "label_map": label_map, "all_types": all_types}
    run = GoldRun(model, data, code=code, force=force, silent=silent, **how, **names)
    nlp = run.begin(folder=Output("OUTPUT", output))
    examples = run.read(nlp)
    calib = run.pipe(nlp, examples)
    run.match([calib], examples)
    check_whole_documents(calib.fit_info.row_unit, gold_preproc)
    ready = ready_to_read(nlp, calib, examples, silent=silent, n_process=n_process)
    with warnings.catch_warnings():
        if not silent:  # `show_adaptation` says them
            warnings.filterwarnings("ignore", message=r"\[CW(04|13|14)\]")
        calib.adapt(ready, max_unknown=1.0 if allow_unknown else MAX_UNKNOWN)
    check_gold_of_examples(calib, examples, silent)
    report_dropped(get_annotation(calib.fit_info.layer), examples, silent)
    events = follow_readers(nlp, calib, lambda: run.match([calib], run.read(nlp), silent=True), silent=silent)
    write_pipeline(nlp, output, force)
    if not silent:
        show_output(calib, events, output, format)
    return calib


def show_output(calib: Calibrator, events: Mapping[str, dict[str, Any]], output: Path, format: str) -> None:
    """Print what was learned, as JSON or in words. events (Mapping): See `follow_readers`."""
    adaptation = calib.fit_info.adaptations[-1]
    if format == "json":
        print_json({"output": str(output), "pipe": calib.name, **adaptation, **({"events": events} if events else {})})
        return
    show_adaptation(calib, adaptation, output)
    for name, means in events.items():
        show_means(name, means)
