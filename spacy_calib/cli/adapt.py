"""`spacy calib adapt`: a few labelled documents of a new kind of text make the scores true there."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..pipe.loading import pipe_of
from .fitting.adapt_output import show_adaptation
from .fitting.fit_event import follow_events, show_followed
from .fitting.fit_pipe import ready_to_read
from .fitting.labels import MOST_UNKNOWN
from .shared.command import Options, command
from .shared.examples import data_files, read_examples
from .shared.gold import check_whole_documents
from .shared.loading import open_model
from .shared.options import CalibratedModel, Code, DocKey, FirstAttr, Force, Format, GoldPreproc, GpuId, NProcess, Silent
from .shared.outputs import check_pipeline_folder
from .shared.results import print_json

if TYPE_CHECKING:
    from ..pipe.component import Calibrator


@dataclass(frozen=True)
class AdaptOptions(Options):
    """Which pipe is adapted, to what."""

    model: CalibratedModel
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="5 to 50 labelled documents of the new kind: a .spacy or .conllu file, or a folder of them"
        ),
    ]
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Folder to write the adapted pipeline to")]
    _: KW_ONLY
    attr: FirstAttr = None
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Go on where the component knows few of the gold labels")
    ] = False
    format: Format = "table"
    gold_preproc: GoldPreproc = False
    doc_key: DocKey = None
    n_process: NProcess = 1
    gpu_id: GpuId = -1
    code: Code = None
    force: Force = False
    silent: Silent = True


@command(
    AdaptOptions,
    does="Make the scores true on new kinds of text by a few labels",
    example="./calibrated tweets.spacy ./adapted",
)
def adapt(options: AdaptOptions) -> Calibrator:
    """
    Adapt a calibrated pipeline to a new kind of text with 5 to 50 labelled
    documents of it, and write the whole pipeline to OUTPUT. The fitted maps
    stay; what is learned on top of them is as much as the documents tell, and
    nothing where the scores are true already. Can be done again.

    RETURNS (Calibrator): The adapted pipe; `fit_info.adaptations` says what it learned.
    RAISES CalibError: every fault of the input.
    """
    from .shared.loading import write_pipeline

    read = [options.data, *data_files(options.data), options.code]
    check_pipeline_folder(options.output, options.force, inputs=read, model=options.model)
    nlp = open_model(options.model, code=options.code, gpu_id=options.gpu_id)
    calib = pipe_of(nlp, options.attr)
    check_whole_documents(calib.fit_info.row_unit, options.gold_preproc)
    examples = read_examples(nlp, options.data, options.gold_preproc, options.doc_key)
    ready = ready_to_read(nlp, calib, examples, silent=options.silent, n_process=options.n_process)
    with warnings.catch_warnings():
        if not options.silent:  # `show_adaptation` says them
            warnings.filterwarnings("ignore", message=r"\[CW(04|13|14)\]")
        calib.adapt(ready, max_unknown=1.0 if options.allow_unknown else MOST_UNKNOWN)
    again = partial(read_examples, nlp, options.data, options.gold_preproc, options.doc_key)
    events = follow_events(nlp, calib, again, silent=options.silent)
    write_pipeline(nlp, options.output, options.force)
    if not options.silent:
        tell(calib, events, options)
    return calib


def tell(calib: Calibrator, events: Mapping[str, dict[str, Any]], options: AdaptOptions) -> None:
    """Print what was learned, as JSON or in words. events (Mapping): See `follow_events`."""
    made = calib.fit_info.adaptations[-1]
    if options.format == "json":
        print_json({"output": str(options.output), "pipe": calib.name, **made, **({"events": events} if events else {})})
        return
    show_adaptation(calib, made, options.output)
    for name, told in events.items():
        show_followed(name, told)
