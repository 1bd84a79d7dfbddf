"""Pipes that read the scores of a calib pipe, in commands: fitted anew, followed and shown. Which they are, the pipeline tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...calibration.registered import fittable_events
from .command import check_option
from .examples import run_pipes
from .screen import msg, number, print_table, warn

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator

# What forecasts are compared with, where a pipe does not name it.
RIVALS = ("product of raw scores", "product of calibrated scores")
# Reads the gold anew.
Read = Callable[[], "list[Example]"]


def unit_named(name: str) -> Any:
    """Return the event that `fit --unit` fits. RAISES C056: none is registered under this name."""
    events = fittable_events()
    wanted = f"one of {', '.join(events)}" if events else "left out, as nothing that is installed fits whole units"
    check_option("--unit", name in events, wanted, repr(name))
    return events[name]


def renew_readers(nlp: Language, calib: Calibrator, event: Any | None, read: Read, *, silent: bool) -> Any | None:
    """Drop the pipes that were fitted to older scores of a fitted pipe; fit one for an event. Warn of those that stay out.

    event (Any | None): See `unit_named`. read (Callable): Of the fit. RETURNS (Any | None): The new pipe.
    RAISES CalibError: What the event's `fit` raises.
    """
    from ...pipe.score_readers import drop_readers

    dropped, reader = drop_readers(nlp, calib.attr), None
    if event is not None:
        examples = list(run_pipes(nlp, read(), nlp.pipe_names, silent=silent, what="Reading events"))
        reader = event.fit(nlp, calib, examples)
    for name in dropped:
        if name not in nlp.component_names:
            warn(
                f"The pipe '{name}' was fitted on scores that are fitted anew, and is left out of the new pipeline; give --unit to fit "
                "one to the new scores, or fit it by its own package."
            )
    return reader


def follow_readers(nlp: Language, calib: Calibrator, read: Read, *, silent: bool) -> dict[str, dict[str, Any]]:
    """Name -> `event_means` of each pipe that reads the scores of an adapted pipe. read: Reads the labelled documents anew."""
    from ...pipe.score_readers import score_readers

    readers = {name: reader for name, reader in score_readers(nlp, calib.attr).items() if hasattr(reader, "event_means")}
    examples = list(run_pipes(nlp, read(), nlp.pipe_names, silent=silent, what="Reading events")) if readers else []
    return {name: reader.event_means(examples, calib) for name, reader in readers.items()}


def show_means(name: str, means: Mapping[str, Any]) -> None:
    """Print how good the forecasts of a pipe are after an adaptation. means (Mapping): Its `event_means`."""
    several = means["called"][1]
    msg.divider(f"{name}: whole {several} (event: {means['event']})")
    if not means["units"]:
        msg.warn(f"None of the {several} has gold throughout, so nothing says how true the forecasts are here.")
        return
    msg.text(
        f"The forecasts stay as they were fitted, and look at the adapted scores: of {means['units']:,} {several} they expect "
        f"{100 * means['expected']:.0f} % to be right, and {100 * means['right']:.0f} % are."
    )


def show_info(name: str, reader: Any) -> None:
    """Print what the fit of a pipe learned: its `event_info`."""
    from ...pipe.score_readers import info_of

    info = info_of(reader)
    if info is None:
        msg.text(f"The pipe '{name}' reads these scores.")
        return
    several, rival = info["called"][1], getattr(reader, "rivals", RIVALS)[1]
    msg.divider(f"{name}: whole {several} (event: {info['event']})")
    share = number(100 * info["right"] / info["units"], 1)
    msg.text(f"{info['units']:,} {several}, {share} % right; squared loss on documents held out:")
    trials = [(rival, info["product"], ""), *((trial["name"], trial["loss"], trial["name"]) for trial in info["trials"])]
    rows = [(title + (" (chosen)" if key == info["chosen"] else ""), number(loss)) for title, loss, key in trials]
    print_table(rows, ("Forecast", "Squared loss"), ("l", "r"))


def show_event_table(table: Mapping[str, Any]) -> None:
    """Print how good the forecasts of a pipe are. table (Mapping): Its `event_table`."""
    one, several = table["called"]
    msg.divider(f"{table['name']}: whole {several} (event: {table['event']})")
    if not table["rows"]:
        msg.warn(f"Nothing to judge: no {one} has both scores and gold.")
        return
    msg.text(f"{table['units']:,} {several}, {number(100 * table['right'], 2)} % right")
    rivals = table.get("rivals", RIVALS)
    names = dict(zip(("raw", "product"), rivals, strict=True))
    columns = ("loss", "calibration", "sharpness", "smce", "floor", "floor95")
    rows = [(names.get(row["name"], row["name"]), *(number(row.get(key)) for key in columns)) for row in table["rows"]]
    header = ("P(yes)", "Squared loss", "Calibration", "Sharpness", "SMCE", "Floor", "Floor 95 %")
    print_table(rows, header, ("l", *"rrrrrr"))
    change = table.get("change")
    if change is not None and change["low"] is not None:
        msg.text(
            f"Squared loss of the forecast less that of the {rivals[1]}: {change['estimate']:+.4f} "
            f"({change['low']:+.4f} to {change['high']:+.4f}, 95 % by document)"
        )
