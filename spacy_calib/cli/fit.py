"""`spacy calib fit`: learn calibrated probabilities from held-out gold and write the pipeline with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpus.visible import shown_path
from .fitting.fit_event import check_event_fits, drop_events, fit_event, show_event, take_event
from .fitting.fit_output import check_sets, show_fit
from .fitting.fit_pipe import check_held_out, count_tags, fit_pipe, share_of_training
from .fitting.new_calib import new_calib
from .fitting.options import FitCommand, FitOptions
from .fitting.settings import MOST_UNKNOWN
from .shared.command import command
from .shared.evidence import check_apart
from .shared.examples import data_files
from .shared.outputs import check_pipeline_folder
from .shared.screen import msg, warn
from .shared.writing import print_json

if TYPE_CHECKING:
    from spacy.language import Language

    from ..pipe.component import Calibrator
    from ..pipe.event import EventPipe


@command(
    FitOptions,
    example="en_core_web_sm dev.spacy ./calibrated",
    kind=FitCommand,
)
def fit(options: FitOptions) -> Calibrator:
    """
    Learn from gold how far the scores of a component of a trained pipeline can be
    trusted, and write the whole pipeline, with calibrated probabilities, to OUTPUT.
    The gold has to be held out: the pipeline was not trained on it.

    Any setting of the pipe can be given as in `spacy train`, for instance
    --components.calib.grouping.n_groups 3. Of several that disagree the first
    counts: options, such settings, --config, the calib pipe that the pipeline has
    already, the defaults named here.

    RETURNS (Calibrator): The fitted pipe.
    RAISES CalibError: every fault of the input.
    """
    from .shared.writing import write_pipeline

    event = take_event(options.given())
    nlp, calib, own = prepare(options)
    counts = None if options.train_data is None else count_tags(nlp, calib, options.train_data, silent=options.silent)
    told: dict[str, Any] = {
        "counted_on": str(options.train_data and shown_path(Path(options.train_data.name))),
        "max_unknown": 1.0 if options.allow_unknown else MOST_UNKNOWN,
    }
    examples = options.examples(nlp)
    if counts is not None:
        check_apart(share_of_training(calib, counts, examples), options.allow_seen)
    fit_pipe(nlp, calib, examples, counts, silent=options.silent, n_process=options.n_process, **told)
    info = calib.fit_info
    check_held_out(info.held_out, info.method, info.row_unit)
    check_sets(calib.fit_info)
    asked = None
    if event is not None:
        asked = fit_event(nlp, calib, event, options.examples(nlp), silent=options.silent)
    write_pipeline(nlp, options.output, options.force)
    if not options.silent:
        tell(nlp, calib, own, options, asked)
    return calib


def prepare(options: FitOptions) -> tuple[Language, Calibrator, str | None]:
    """See `new_calib`, with the place of the output looked at before.

    RAISES CalibError: a fault of the options, the files, the pipeline or the settings.
    """
    given = options.given()
    take_event(given)
    gold = [*options.gold_paths, *([] if options.train_data is None else [options.train_data])]
    read = [path for data in gold for path in (data, *data_files(data))]
    inputs = [*read, options.config, options.code]

    def check() -> None:
        check_pipeline_folder(options.output, options.force, inputs=inputs, model=options.model)

    nlp, calib, own = new_calib(options, given, check)
    event = take_event(options.given())
    check_event_fits(calib, event)
    drop_events(nlp, calib, event)
    return nlp, calib, own


def tell(nlp: Language, calib: Calibrator, own: str | None, options: FitOptions, asked: EventPipe | None) -> None:
    """Print what was fitted, as JSON or in words. own (str | None): The pipe whose settings were taken over. asked (EventPipe | None): Of units."""
    told = None if asked is None else asked.info
    component = calib.source.component
    if component and component not in nlp.pipe_names:
        warn(
            f"Component '{component}' is disabled in this pipeline: without it {calib.fit_info.row_unit}s get no score; see nlp.enable_pipe."
        )
    if options.format == "json":
        of_units = {} if told is None else {"event": told.state()}
        print_json({"output": str(options.output), "pipe": calib.name, **calib.fit_info.state(), **of_units})
        return
    if own is not None:
        msg.info(f"Settings that are not given are those of the pipeline's own pipe '{own}'")
    show_fit(calib, options.output)
    if asked is not None and told is not None:
        show_event(asked, told)
