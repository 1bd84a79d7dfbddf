"""Calibrated scores for stock pipelines, without gold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...cli.shared.command import argument, command, option
from ...cli.shared.options import Force, Format, Silent
from ...cli.shared.outputs import check_pipeline_folder
from ...cli.shared.screen import TableColumn, msg, number, show_rows, whole
from ...cli.shared.writing import print_result
from .messages import calib_error

if TYPE_CHECKING:
    from .card import Card

_COLUMNS = (
    TableColumn("Card", "card", str, "l"),
    TableColumn("Component", "component", str, "l"),
    TableColumn("Fitted for", "pipeline", str, "l"),
    TableColumn("Sources", "sources", whole),
    TableColumn("Log loss raw", "raw", number),
    TableColumn("calibrated", "calibrated", number),
    TableColumn("Licence", "licence", str, "l"),
)
Components = Annotated[
    list[str] | None, option("Component to calibrate; may be repeated", "--component", "-C", show_default="all")
]


@command(example="en_core_web_sm ./calibrated")
def pretrained(
    model: Annotated[str | None, argument("MODEL", "Stock pipeline: package name or path")] = None,
    output: Annotated[Path | None, argument("OUTPUT", "Folder for the calibrated pipeline")] = None,
    *,
    component: Components = None,
    card: Annotated[str | None, option("Card to use: name, JSON file, or universal for entities of any language")] = None,
    precision: Annotated[float | None, option("Mean precision of accepted entities on left-out sources", "-p")] = None,
    by: Annotated[str | None, option("Score only parts of speech, in a pipe calib_pos", words=("pos",))] = None,
    list_cards: Annotated[bool, option("List the available cards", "--list")] = False,
    format: Format = "table",
    force: Force = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Write a stock pipeline with calibrated scores; you need no gold. Each score comes from a card, which lists the gold that it
    was fitted on and its errors on other sources.

    RETURNS (dict): "cards": the available cards, or the ones used; "output": the folder.
    RAISES C830: neither both folders nor --list. CalibError: any other bad input.
    """
    from ...cli.info_command import card_cutoff_line
    from ...cli.shared.writing import write_pipeline
    from ...pipe.pipeline import fitted_pipes
    from .applying import pretrained as calibrate
    from .card import all_cards

    if list_cards:
        result: dict[str, Any] = {"cards": [summarize_card(available) for available in all_cards()], "output": None}
        print_result(result, lambda: show_rows(result["cards"], _COLUMNS), format, silent)
        return result
    if model is None or output is None:
        raise calib_error("C830")
    check_pipeline_folder(output, force, model=model)
    nlp = calibrate(model, components=component, card=card, precision=precision, by=by)  # type: ignore[arg-type]  # C001
    write_pipeline(nlp, output, force)
    used = {pipe.attr: pipe.fit_info.pretrained for pipe in fitted_pipes(nlp) if pipe.fit_info.pretrained is not None}
    result = {"cards": [{"attr": attr, **about} for attr, about in used.items()], "output": str(output)}

    def show() -> None:
        for attr, about in used.items():
            msg.good(f"'{attr}': card {about['card']} ({about['licence']})")
            if about["cutoff"] is not None:
                msg.text(f"Entities are accepted from {card_cutoff_line(about['cutoff'])}.")
        msg.good(f"Pipeline: {output}")
        if len(used) > 1:
            options = " or ".join(f"--component {pipe.source.component}" for pipe in fitted_pipes(nlp) if pipe.attr in used)
            msg.text(f"Choose one of the pipes in other commands by {options}.")

    print_result(result, show, format, silent)
    return result


def summarize_card(card: Card) -> dict[str, Any]:
    """Return a card's row for `--list`: the keys of _COLUMNS, and "language"; log losses are means over left-out sources."""
    rows = card.data["left_out"]
    losses = {kind: sum(row[kind]["log_loss"] for row in rows) / max(1, len(rows)) for kind in ("raw", "calibrated")}
    about = {name: card.data[name] for name in ("component", "language", "pipeline", "licence")}
    return {"card": card.name, **about, "sources": len(rows), **losses}
