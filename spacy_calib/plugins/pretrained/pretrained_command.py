"""Calibrated scores for stock pipelines, without gold.

`spacy calib pretrained`: calibrated scores for stock pipelines, without gold.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...cli.shared.command import argument, command, option
from ...cli.shared.options import Force, Format, Silent
from ...cli.shared.outputs import check_pipeline_folder
from ...cli.shared.screen import TableColumn, msg, number, show_rows, whole
from ...cli.shared.writing import deliver
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
    list[str] | None, option("Component to calibrate (may be repeated)", "--component", "-C", show_default="all")
]


@command(example="en_core_web_sm ./calibrated")
def pretrained(
    model: Annotated[str | None, argument("MODEL", "Stock pipeline: package name or path")] = None,
    output: Annotated[Path | None, argument("OUTPUT", "Folder for the calibrated pipeline")] = None,
    *,
    component: Components = None,
    card: Annotated[str | None, option("Card to use: a name, a JSON file, or universal (entities of any language)")] = None,
    precision: Annotated[float | None, option("Mean precision of accepted entities on left-out sources", "-p")] = None,
    by: Annotated[str | None, option("Score only parts of speech, in a pipe calib_pos", words=("pos",))] = None,
    list_cards: Annotated[bool, option("List all cards", "--list")] = False,
    format: Format = "table",
    force: Force = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Write a stock pipeline with calibrated scores that need no gold of your own.
    A card documents what they were fitted on, and how well they do elsewhere.

    RETURNS (dict): "cards": what there is, or what was used; "output": the folder.
    RAISES C830: neither both folders nor --list. CalibError: every other fault of the input.
    """
    from ...cli.info_command import card_cutoff_line
    from ...cli.shared.writing import write_pipeline
    from ...pipe.component import fitted_pipes
    from .applying import pretrained as calibrate
    from .card import all_cards

    if list_cards:
        result: dict[str, Any] = {"cards": [row_of(one) for one in all_cards()], "output": None}
        deliver(result, lambda: show_rows(result["cards"], _COLUMNS), output=None, format=format, silent=silent)
        return result
    if model is None or output is None:
        raise calib_error("C830")
    check_pipeline_folder(output, force, model=model)
    nlp = calibrate(model, components=component, card=card, precision=precision, by=by)
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
            msg.text(f"Commands that need to know which one is meant take {options}.")

    deliver(result, show, output=None, format=format, silent=silent)
    return result


def row_of(card: Card) -> dict[str, Any]:
    """What `--list` shows of a card; log losses are means over the sources that were left out."""
    rows = card.data["left_out"]
    losses = {kind: sum(row[kind]["log_loss"] for row in rows) / max(1, len(rows)) for kind in ("raw", "calibrated")}
    about = {name: card.data[name] for name in ("component", "language", "pipeline", "licence")}
    return {"card": card.name, **about, "sources": len(rows), **losses}
