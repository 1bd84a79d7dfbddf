"""What is judged -> all that its page says, the sentences of it that are printed, and its pictures."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...annotations import plain_name
from ...cli.evaluating.evaluation import Judgement, judged_units, nothing_to_show, table_of_unit
from ...cli.evaluating.options import UNITS
from ...cli.fitting.conventions import conventions_of
from ...cli.shared.evidence import check_bins
from ...cli.shared.run import fit_in_words, unit_of
from ...cli.shared.screen import msg
from .messages import calib_error

if TYPE_CHECKING:
    from ...cli.evaluating.options import EvaluateRun
    from ...cli.shared.run import ScoredPipe
    from ...metrics.judged_view import JudgedView


def page_contents(found: Judgement, tables: Mapping[str, Any], run: EvaluateRun) -> dict[str, Any]:
    """What the page shows. tables (Mapping): Pipe -> its table, see `evaluate`. RAISES C005, C030: too little to judge."""
    views, skipped = [], found.skipped
    for model in found.models:
        own, missing = model_views(model, tables[model.pipe.name], run)
        views += own
        skipped = [*skipped, *missing]
    if not views:
        raise nothing_to_show(found)
    names = [view["name"] for view in views]
    for view, name in zip(views, names, strict=True):
        if names.count(name) > 1:
            view["name"] = f"{name} ({view['pipe']})"
    return {
        "title": f"How true are the scores of {found.name}?",
        "model": f"{found.name} {found.version}".strip(),
        "data": run.data.name,
        "made": how_made(found, run, views),
        "skipped": skipped,
        "views": views,
    }


def model_views(model: ScoredPipe, table: Mapping[str, Any], run: EvaluateRun) -> tuple[list[dict[str, Any]], list[str]]:
    """A pipe's views, of tokens and of entities, and what cannot be judged, as sentences. RAISES C005: too little to judge."""
    from .contents import view_contents

    facts, views, skipped = facts_of(model), [], []
    for unit, judged in judged_units(model, run).items():
        name = f"{facts['component'] or 'Doc'}: {judged.called[1] if unit == 'entities' else unit}"
        if len(judged.pairs):
            check_bins(len(judged.pairs), run.bins, model.pipe.threshold)
            views.append(view_contents(model.corpus, judged, table_of_unit(table, unit), {"name": name, **facts}))
            views[-1]["conventions"] = conventions_of(None if unit == "entities" else table["conventions"])
        else:
            skipped.append(f"Not judged: {name} (pipe {model.pipe.name}). The data has none that has both gold and a score.")
    return views, skipped


def facts_of(model: ScoredPipe) -> dict[str, Any]:
    """About the pipe, for the page; no folder of the machine is named."""
    pipe, info = model.pipe, model.pipe.fit_info
    return {
        "pipe": pipe.name,
        "attr": pipe.attr,
        "component": pipe.source.component,
        "layer": plain_name(info.layer),
        "event": info.span_event if pipe.spans.groups is not None else None,
        "counted_on": Path(info.counted_on).name,
        "seen": model.seen,
        "weights_changed": pipe.lookup.weights_changed(),
    }


def how_made(found: Judgement, run: EvaluateRun, views: list[dict[str, Any]]) -> dict[str, str]:
    """Name -> text."""
    from ...pairs.documents import by_unit

    held = {}
    for package in ("spacy-calib", "spacy", "numpy"):
        with contextlib.suppress(ImportError):
            held[package] = version(package)
    documents = max(views, key=lambda view: view["documents"])["counted"]
    by = by_unit(**views[0]["table"]["by"])
    return {
        "Pipeline": f"{found.name} {found.version}".strip() + f", given as {Path(run.model).name}",
        "Data": f"{run.data.name}, {documents} with scores",
        **{f"Pipe {model.pipe.name}": fit_in_words(model.pipe) for model in found.models},
        "Judged with": f"{views[0]['bins']} adaptive bins; intervals by bootstrap {by}",
        "Versions": ", ".join(f"{name} {number}" for name, number in held.items()) + f", python {platform.python_version()}",
    }


def show_verdicts(contents: Mapping[str, Any]) -> None:
    """Print what the page says of each pipe in words."""
    for view in contents["views"]:
        msg.divider(f"{view['name']}: {view['verdict']['heading']}")
        msg.text(view["verdict"]["sentence"])
        for sentence in view["verdict"]["more"]:
            msg.text(sentence)
    for sentence in contents["skipped"]:
        msg.warn(sentence)


def picture_numbers(found: Judgement, tables: Mapping[str, Any], names: Iterable[str], run: EvaluateRun) -> dict[str, Any]:
    """What pictures show of the first pipe.

    tables (Mapping): Pipe -> its table, see `evaluate`. names (Iterable[str]): Of the pictures, "tags" among them.
    RETURNS (dict): "pipe", "unit", "pairs", and "numbers": name -> panels as in `plugins.report.plot_data.Panel`, or rows as in `metrics.table.ErrorRow`.
    RAISES C030: nothing can be shown. C065, C265: the pipe has no such units. C098: it does not know a tag. C005: there are fewer pairs than bins.
    """
    if not found.models:
        raise nothing_to_show(found)
    model, pipe = found.models[0], found.models[0].pipe
    unit = unit_of(pipe, run.unit)
    judged = judged_units(model, run)[UNITS[unit]]
    for tag in run.tags:
        if tag not in judged.labels:
            some = ", ".join(judged.labels[:60]) + (", ..." if len(judged.labels) > 60 else "")
            raise calib_error("C098", name=pipe.name, tag=tag, available=some)
    check_bins(len(judged), judged.n_bins, pipe.threshold)
    errors = table_of_unit(tables[pipe.name], judged.kind)["errors"]
    numbers = {name: _numbers(name, judged, errors, run.tags) for name in names}
    return {"pipe": pipe.name, "unit": unit, "pairs": len(judged.pairs), "numbers": numbers}


def _numbers(name: str, judged: JudgedView, errors: list[dict[str, Any]], tags: Sequence[str]) -> list[dict[str, Any]]:
    """Those of one picture. errors (list): Of the table."""
    from .plot_data import coverage_curves, group_panels, reliability_panel, tag_panels, top_panel

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


def picture_title(found: Judgement, numbers: Mapping[str, Any], run: EvaluateRun) -> str:
    """What stands above the pictures. numbers (Mapping): See `picture_numbers`."""
    model = found.models[0]
    of = f"{model.pipe.source.component or 'scores'} of {found.name} {found.version}".strip()
    fitted_on = " = THE FIT DATA" if model.seen and model.seen["many"] else ""
    return f"{of}, judged on {run.data.name}{fitted_on} ({UNITS[numbers['unit']]})"


def write_pictures(numbers: Mapping[str, Any], targets: Sequence[tuple[str, Path]], title: str) -> None:
    """Draw all pictures, then write them. numbers (Mapping): See `picture_numbers`. targets: Names and files. RAISES C055: a file cannot be written."""
    from ...cli.shared.writing import write_file
    from ...optional import picture_bytes
    from .plot_data import Panel
    from .plots import draw_panels, plot_coverage, plot_errors

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
