"""`spacy calib adapt`: a few labelled documents of a new kind of text make the scores true there."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .fitting.adapt_output import show_adaptation
from .fitting.fit_event import follow_events, show_followed
from .fitting.new_calib import ready_to_read
from .fitting.settings import MAX_UNKNOWN
from .shared.command import argument, options_command
from .shared.evidence import check_whole_documents
from .shared.examples import read_examples
from .shared.options import AllowUnknown, FirstAttr, Force, Format
from .shared.outputs import Output
from .shared.run import Run
from .shared.writing import print_json

if TYPE_CHECKING:
    from ..pipe.component import Calibrator


@dataclass(frozen=True)
class AdaptOptions(Run):
    """Which pipe is adapted, to what."""

    needs_gold = True

    data: Annotated[
        Path,
        argument(
            "DATA",
            "5 to 50 labelled documents of the new kind: a .spacy or .conllu file, answers that an annotation tool exported (.jsonl, .json), or a folder of them",
        ),
    ]
    output: Annotated[Path, argument("OUTPUT", "Folder to write the adapted pipeline to")] = field()
    _: KW_ONLY
    attr: FirstAttr = None
    allow_unknown: AllowUnknown = False
    format: Format = "table"
    force: Force = False

    def outputs(self) -> list[Output]:
        return []

    def folder(self) -> Output:
        return Output("OUTPUT", self.output)


@options_command(
    AdaptOptions,
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
    from .shared.writing import write_pipeline

    nlp, calib = options.open()
    check_whole_documents(calib.fit_info.row_unit, options.gold_preproc)
    examples = read_examples(nlp, options.data, options.gold_preproc, options.doc_key)
    ready = ready_to_read(nlp, calib, examples, silent=options.silent, n_process=options.n_process)
    with warnings.catch_warnings():
        if not options.silent:  # `show_adaptation` says them
            warnings.filterwarnings("ignore", message=r"\[CW(04|13|14)\]")
        calib.adapt(ready, max_unknown=1.0 if options.allow_unknown else MAX_UNKNOWN)
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
