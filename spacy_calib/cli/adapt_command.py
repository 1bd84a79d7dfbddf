"""`spacy calib adapt`: adapt a calibration to a new domain with a few labelled documents."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .fitting.adapt_output import show_adaptation
from .fitting.new_calib import ready_to_read
from .fitting.settings import MAX_UNKNOWN
from .shared.command import argument, command
from .shared.gold import check_whole_documents, report_dropped, report_unknown
from .shared.options import (
    AllowUnknown,
    CalibratedModel,
    ChosenComponent,
    Code,
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
from .shared.writing import print_result, write_pipeline

if TYPE_CHECKING:
    from ..pipe.component import Calibrator

DATA_HELP = "5 to 50 labelled documents of the new domain: .spacy, .conllu, an export of an annotation tool, or a folder"


@command(example="./calibrated tweets.spacy ./adapted")
def adapt(
    model: CalibratedModel,
    data: Annotated[Path, argument("DATA", DATA_HELP)],
    output: Annotated[Path, argument("OUTPUT", "Folder to write the adapted pipeline to")],
    *,
    component: ChosenComponent = None,
    label_map: LabelMap = None,
    allow_unknown: AllowUnknown = False,
    format: Format = "table",
    force: Force = False,
    gold_preproc: GoldPreproc = False,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    silent: Silent = True,
) -> Calibrator:
    """
    Adapt a calibrated pipeline to a new domain with 5 to 50 labelled documents, and write the whole pipeline to OUTPUT. The
    fitted maps stay. The adaptation is added on top of them: its size depends on the evidence in the documents, and it is zero
    if the scores are well calibrated already. Can be repeated.

    RETURNS (Calibrator): The adapted pipe; `fit_info.adaptations` describes each adaptation.
    RAISES CalibError: any error in the input. Arguments: the annotation of each contains its help (`shared/options.py`).
    """
    from ..pipe.gold_checks import unknown_in_examples

    run = GoldRun(
        model, data, component=component, label_map=label_map, gold_preproc=gold_preproc,
        n_process=n_process, gpu_id=gpu_id, code=code, force=force, silent=silent,
    )  # fmt: skip
    nlp = run.begin(folder=Output("OUTPUT", output))
    examples = run.read(nlp)
    calib = run.pipe(nlp, examples)
    run.match([calib], examples)  # renames gold labels
    check_whole_documents(calib.annotation.kind, gold_preproc)
    scored_examples = ready_to_read(nlp, calib, examples, silent=silent, n_process=n_process)
    with warnings.catch_warnings():
        if not silent:  # `show_adaptation` prints these warnings
            warnings.filterwarnings("ignore", message=r"\[CW(04|13|14)\]")
        calib.adapt(scored_examples, max_unknown=1.0 if allow_unknown else MAX_UNKNOWN)  # share of gold with unknown labels
    report_unknown(calib, unknown_in_examples(calib, examples), silent)
    report_dropped(calib.annotation, examples, silent)
    write_pipeline(nlp, output, force)
    adaptation = calib.fit_info.adaptations[-1]
    result = {"output": str(output), "pipe": calib.name, **adaptation}
    print_result(result, partial(show_adaptation, calib, adaptation, output), format, silent)
    return calib
