"""What is judged -> the numbers behind pictures, and the files with these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import calib_error
from ..shared.gold import check_bins
from .judging import Judgement, judged_units, nothing_to_show, table_of_unit

if TYPE_CHECKING:
    from ...pages.judged import JudgedView
    from ..evaluate import EvaluateOptions

KINDS = ("reliability", "top", "groups", "errors", "coverage")
SUFFIXES = (".png", ".svg", ".pdf")
# --unit -> what is judged.
UNITS = {"token": "tokens", "entity": "entities", "document": "documents"}


def picture_numbers(found: Judgement, tables: Mapping[str, Any], names: Iterable[str], run: EvaluateOptions) -> dict[str, Any]:
    """What pictures show of the first pipe.

    tables (Mapping): Pipe -> its table, see `evaluate`. names (Iterable[str]): Of the pictures, "tags" among them.
    RETURNS (dict): "pipe", "unit", "pairs", and "numbers": name -> panels as in `pages.plot_data.Panel`, or rows as in `metrics.table.ErrorRow`.
    RAISES C030: nothing can be shown. C065, C265: the pipe has no such units. C098: it does not know a tag. C005: there are fewer pairs than bins.
    """
    if not found.models:
        raise nothing_to_show(found)
    model = found.models[0]
    unit = model.unit_of(run.unit)
    judged = judged_units(model, run)[UNITS[unit]]
    _check_tags(run.tags, judged.labels, model.name)
    check_bins(len(judged), judged.n_bins, model.threshold)
    errors = table_of_unit(tables[model.name], judged.kind)["errors"]
    numbers = {name: _numbers(name, judged, errors, run.tags) for name in names}
    return {"pipe": model.name, "unit": unit, "pairs": len(judged.pairs), "numbers": numbers}


def _check_tags(tags: Sequence[str], labels: Sequence[str], name: str) -> None:
    """RAISES C098: the pipe does not know one of the tags."""
    for tag in tags:
        if tag not in labels:
            some = ", ".join(labels[:60]) + (", ..." if len(labels) > 60 else "")
            raise calib_error("C098", name=name, tag=tag, available=some)


def _numbers(name: str, judged: JudgedView, errors: list[dict[str, Any]], tags: Sequence[str]) -> list[dict[str, Any]]:
    """Those of one picture. errors (list): Of the table."""
    from ...pages.plot_data import coverage_curves, group_panels, reliability_panel, tag_panels, top_panel

    pairs, calibrated, labels, n_bins = judged.pairs, judged.calibrated, judged.labels, judged.n_bins
    called = "tag" if judged.kind == "tokens" else "label"
    if name == "errors":
        return errors
    if name == "coverage":
        return [coverage_curves(pairs, calibrated)]
    if name == "groups":
        panels = group_panels(pairs, calibrated, judged.groups, labels, n_bins, called)
    elif name == "tags":
        panels = tag_panels(pairs, calibrated, labels, tags, n_bins)
    elif name == "top":
        panels = [top_panel(pairs, calibrated, n_bins)]
    else:
        title, note = f"All {called}s", f"{len(pairs):,} pairs"
        panels = [reliability_panel(pairs.scores, calibrated, pairs.hits, title, note, n_bins)]
    return [asdict(panel) for panel in panels]


def picture_title(found: Judgement, numbers: Mapping[str, Any], run: EvaluateOptions) -> str:
    """What stands above the pictures. numbers (Mapping): See `picture_numbers`."""
    model = found.models[0]
    of = f"{model.component or 'scores'} of {found.name} {found.version}".strip()
    fitted_on = " = THE FIT DATA" if model.seen and model.seen["many"] else ""
    return f"{of}, judged on {run.data.name}{fitted_on} ({UNITS[numbers['unit']]})"


def write_pictures(numbers: Mapping[str, Any], targets: Sequence[tuple[str, Path]], title: str) -> None:
    """Draw all pictures, then write them. numbers (Mapping): See `picture_numbers`. targets: Names and files. RAISES C055: a file cannot be written."""
    from ...pages.plot_data import Panel
    from ...pages.plots import draw_panels, picture_bytes, plot_coverage, plot_errors
    from ..shared.atomic import write_file

    drawn = []
    for name, path in targets:
        held = numbers["numbers"][name]
        if name == "errors":
            figure = plot_errors(held, title=title).figure
        elif name == "coverage":
            figure = plot_coverage(held[0], title=title).figure
        else:
            measure = {"reliability": "SMCE", "top": "ECE", "groups": "GMCE"}.get(name, "error")
            figure = draw_panels([Panel.of(one) for one in held], title, measure=measure, columns=3)
        drawn.append((path, picture_bytes(figure, path.suffix)))
    for path, content in drawn:
        write_file(path, content)
