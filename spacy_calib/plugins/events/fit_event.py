"""Fits the pipe that says how probable it is that a whole unit (a sentence) is right, beside the calib pipe of its tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...annotations.span_events import UNIT_EVENTS
from ...cli.shared.examples import run_pipes
from ...cli.shared.screen import msg, number, print_table, warn
from ...pairs.documents import TOKEN
from .messages import calib_error

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator
    from .component import EventPipe
    from .event_state import EventInfo


TREE = "tree"
_ABOUT = {"sentence": "the labels of tokens", TREE: "the arcs of a parser"}


def drop_events(nlp: Language, calib: Calibrator, event: str | None) -> None:
    """Take the event pipe of this prefix, fitted to older scores, out; warn where no new one comes.

    RAISES C383: the component does not label tokens one by one, or for trees, it is no parser.
    """
    from .component import EventPipe

    annotation = calib.source.annotation(calib.lookup.component())
    of_tokens = annotation.unit == TOKEN and not annotation.overlapping and not annotation.span_event
    if event is not None and not (annotation.arcs if event == TREE else of_tokens):
        what = "labels of tokens" if of_tokens else "labels of spans or documents"
        if annotation.arcs:
            score = f"Span._.{calib.attr}_score"
            what = f"arcs, and {annotation.span_words[1]} have a score already ({score}; --event {TREE} for another)"
        raise calib_error("C383", event=event, about=_ABOUT[event], component=calib.source.component, what=what)
    for name in [name for name, pipe in nlp.components if isinstance(pipe, EventPipe) and pipe.attr == calib.attr]:
        nlp.remove_pipe(name)
        if event is None:
            warn(
                f"The pipe '{name}' was fitted on scores that are fitted anew, and is left out of the new pipeline; give --event to fit it again."
            )


def fit_event(nlp: Language, calib: Calibrator, event: str, examples: list[Example], *, silent: bool) -> EventPipe:
    """Add an event pipe and fit it. examples: Read anew, predicted Docs bare. RAISES C384: no unit is found. C382: no gold."""
    from .component import EventPipe, HeldOutScores

    ready = list(run_pipes(nlp, examples, nlp.pipe_names, silent=silent, what="Reading events"))
    config = {"attr": calib.attr, "event": {"@calib_events": UNIT_EVENTS[event]}}
    made = nlp.add_pipe("calib_event", name=f"{calib.attr}_event", config=config, last=True)
    assert isinstance(made, EventPipe)
    if not any(len(made.event.units(example.predicted)) for example in ready):
        raise calib_error("C384", event=event)
    made.fit(ready, HeldOutScores(calib))
    return made


def follow_events(
    nlp: Language, calib: Calibrator, read: Callable[[], list[Example]], *, silent: bool
) -> dict[str, dict[str, Any]]:
    """How true the forecasts of event pipes are that read an adapted calib pipe: they stay as they were fitted, and look at adapted scores.

    read (Callable): Reads the labelled documents anew, asked only where there are such pipes.
    RETURNS (dict): Name -> "called", "event", "units", and of them the mean "expected" to be right and "right" (None without units); from scores of adaptations that
        did not see the document, where there are several.
    """
    from .component import HeldOutScores, event_pipes

    pipes = event_pipes(nlp, calib.attr)
    ready = list(run_pipes(nlp, read(), nlp.pipe_names, silent=silent, what="Reading events")) if pipes else []
    found: dict[str, dict[str, Any]] = {}
    for pipe in pipes:
        units = pipe.gather(ready, HeldOutScores(calib))[0]
        means = {"expected": pipe.learned.forecast(units.units), "right": units.hits}
        told = {name: float(values.mean()) if len(units.hits) else None for name, values in means.items()}
        found[pipe.name] = {"called": list(pipe.event.called), "event": pipe.event.what, "units": len(units.hits), **told}
    return found


def show_followed(name: str, told: Mapping[str, Any]) -> None:
    """Print how true the forecasts of an event pipe are after an adaptation. told (Mapping): As `follow_events` gives it."""
    several = told["called"][1]
    msg.divider(f"{name}: whole {several} (event: {told['event']})")
    if not told["units"]:
        msg.warn(f"None of the {several} has gold throughout, so nothing says how true the forecasts are here.")
        return
    msg.text(
        f"The forecasts stay as they were fitted, and look at the adapted scores: of {told['units']:,} {several} they expect "
        f"{100 * told['expected']:.0f} % to be right, and {100 * told['right']:.0f} % are."
    )


def show_event(pipe: EventPipe, info: EventInfo) -> None:
    """Print what an event pipe learned on the fit data. info (EventInfo): Of its fit."""
    msg.divider(f"{pipe.name}: whole {info.called[1]} (event: {info.event})")
    share = number(100 * info.right / info.units, 1)
    msg.text(f"{info.units:,} {info.called[1]}, {share} % right; squared loss on documents held out:")
    tried = [(pipe.event.rivals[1], info.product, ""), *((trial.name, trial.loss, trial.name) for trial in info.trials)]
    rows = [(said + (" (chosen)" if name == info.chosen else ""), number(loss)) for said, loss, name in tried]
    print_table(rows, ("Forecast", "Squared loss"), ("l", "r"))


def show_event_table(table: dict[str, Any]) -> None:
    """Print how good the forecasts of an event pipe are. table (dict): See `pipe.evaluation.event_table`."""
    one, several = table["called"]
    msg.divider(f"{table['name']}: whole {several} (event: {table['event']})")
    if not table["rows"]:
        msg.warn(f"Nothing to judge: no {one} has both scores and gold.")
        return
    msg.text(f"{table['units']:,} {several}, {number(100 * table['right'], 2)} % right")
    names = dict(zip(("raw", "product"), table["rivals"], strict=True)) | {"forecast": "forecast"}
    columns = ("loss", "calibration", "sharpness", "smce", "floor", "floor95")
    rows = [(names[row["name"]], *(number(row[key]) for key in columns)) for row in table["rows"]]
    header = ("P(yes)", "Squared loss", "Calibration", "Sharpness", "SMCE", "Floor", "Floor 95 %")
    print_table(rows, header, ("l", *"rrrrrr"))
    change = table["change"]
    if change is not None and change["low"] is not None:
        msg.text(
            f"Squared loss of the forecast less that of the {table['rivals'][1]}: {change['estimate']:+.4f} "
            f"({change['low']:+.4f} to {change['high']:+.4f}, 95 % by document)"
        )
