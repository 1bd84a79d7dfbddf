"""Pipes that read the scores of a calib pipe, such as event pipes: fit and evaluate them, and print what they learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...calibration.registered import fittable_events
from .command import check_option
from .examples import run_pipes
from .screen import TableColumn, msg, number, print_table, show_rows, warn

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pipe.component import Calibrator

# What forecasts are compared with, if a pipe has no `rivals`.
RIVALS = ("product of raw scores", "product of calibrated scores")
_FORECAST_COLUMNS = (
    TableColumn("Squared loss", "loss", number),
    TableColumn("Calibration", "calibration", number),
    TableColumn("Sharpness", "sharpness", number),
    TableColumn("SMCE", "smce", number),
    TableColumn("Floor", "floor", number),
    TableColumn("Floor 95 %", "floor95", number, is_detail=True),
)
# Reads the gold again, into new Docs.
ReadGold = Callable[[], "list[Example]"]


def get_event(name: str) -> Any:
    """Return the event that `fit --unit NAME` fits. RAISES C056: none is registered under this name."""
    events = fittable_events()
    expected = f"one of {', '.join(events)}" if events else "left out, as no installed package fits whole units"
    check_option("--unit", name in events, expected, repr(name))
    return events[name]


def renew_readers(nlp: Language, calib: Calibrator, event: Any | None, read: ReadGold, *, silent: bool) -> Any | None:
    """Remove the pipes that were fitted to older scores of a calib pipe, and fit one for an event; warn of those not replaced.

    event (Any | None): From `get_event`. read (Callable): Reads the gold of the fit.
    RETURNS (Any | None): The new pipe. RAISES CalibError: any error of the event's `fit`.
    """
    from ...pipe.score_readers import drop_readers

    removed_names, reader = drop_readers(nlp, calib.attr), None
    if event is not None:
        examples = list(run_pipes(nlp, read(), nlp.pipe_names, silent=silent, title="Reading events"))
        reader = event.fit(nlp, calib, examples)
    for name in removed_names:
        if name not in nlp.component_names:
            warn(
                f"The pipe '{name}' was fitted to the old scores, and is left out of the new pipeline; give --unit to fit one to the new "
                "scores, or fit it by its own package."
            )
    return reader


def follow_readers(nlp: Language, calib: Calibrator, read: ReadGold, *, silent: bool) -> dict[str, dict[str, Any]]:
    """Return pipe name -> `event_means` of the pipes that read an adapted calib pipe. read: Reads the labelled documents."""
    from ...pipe.score_readers import score_readers

    readers = {name: reader for name, reader in score_readers(nlp, calib.attr).items() if hasattr(reader, "event_means")}
    examples = list(run_pipes(nlp, read(), nlp.pipe_names, silent=silent, title="Reading events")) if readers else []
    return {name: reader.event_means(examples, calib) for name, reader in readers.items()}


def show_means(name: str, means: Mapping[str, Any]) -> None:
    """Print how well the forecasts of a pipe are calibrated after an adaptation. means (Mapping): Its `event_means`."""
    plural = means["called"][1]
    msg.divider(f"{name}: whole {plural} (event: {means['event']})")
    if not means["units"]:
        msg.warn(f"None of the {plural} has gold for all its tokens, so the forecasts cannot be evaluated here.")
        return
    msg.text(
        f"The forecasts were not fitted again, but read the adapted scores: of {means['units']:,} {plural} they expect "
        f"{100 * means['expected']:.0f} % to be right, and {100 * means['right']:.0f} % are."
    )


def show_info(name: str, reader: Any) -> None:
    """Print what a pipe learned at its fit: its `event_info`."""
    from ...pipe.score_readers import info_of

    info = info_of(reader)
    if info is None:
        msg.text(f"The pipe '{name}' reads these scores.")
        return
    plural, rival = info["called"][1], getattr(reader, "rivals", RIVALS)[1]
    msg.divider(f"{name}: whole {plural} (event: {info['event']})")
    share = number(100 * info["right"] / info["units"], 1)
    msg.text(f"{info['units']:,} {plural}, {share} % right; squared loss on held-out documents:")
    trials = [(rival, info["product"], ""), *((trial["name"], trial["loss"], trial["name"]) for trial in info["trials"])]
    rows = [(title + (" (chosen)" if key == info["chosen"] else ""), number(loss)) for title, loss, key in trials]
    print_table(rows, ("Forecast", "Squared loss"), ("l", "r"))


def show_event_table(table: Mapping[str, Any], details: bool) -> None:
    """Print the evaluation of the forecasts of a pipe. table (Mapping): Its `event_table`. details (bool): As in `show_rows`."""
    singular, plural = table["called"]
    msg.divider(f"{table['name']}: whole {plural} (event: {table['event']})")
    if not table["rows"]:
        msg.warn(f"Nothing to evaluate: no {singular} has both scores and gold.")
        return
    msg.text(f"{table['units']:,} {plural}, {number(100 * table['right'], 2)} % right")
    rivals = table.get("rivals", RIVALS)
    names = dict(zip(("raw", "product"), rivals, strict=True))
    figures = ("loss", "calibration", "sharpness", "smce", "floor", "floor95")
    rows = [{"name": row["name"], **{key: row.get(key) for key in figures}} for row in table["rows"]]
    show_rows(rows, (TableColumn("P(yes)", "name", lambda name: names.get(name, name), "l"), *_FORECAST_COLUMNS), details)
    change = table.get("change")
    if change is not None and change["low"] is not None:
        msg.text(
            f"Squared loss of the forecast minus that of the {rivals[1]}: {change['estimate']:+.4f} "
            f"({change['low']:+.4f} to {change['high']:+.4f}, 95 % by document)"
        )
