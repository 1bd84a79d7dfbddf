"""What is judged -> everything that its page says, and the sentences of it that are printed."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..shared.gold import check_bins
from ..shared.screen import msg
from .judging import Judgement, judged_units, nothing_to_show, table_of_unit

if TYPE_CHECKING:
    from ..evaluate import EvaluateOptions
    from ..shared.scored import ScoredModel


def page_contents(found: Judgement, tables: Mapping[str, Any], run: EvaluateOptions) -> dict[str, Any]:
    """What the page shows, see `pages.page.render_report`. tables (Mapping): Pipe -> its table, see `evaluate`.

    RAISES C005, C030: there is too little to judge.
    """
    views, skipped = [], found.skipped
    for model in found.models:
        own, missing = model_views(model, tables[model.name], run)
        views += own
        skipped = [*skipped, *missing]
    if not views:
        raise nothing_to_show(found)
    tell_apart(views)
    return {
        "title": f"How true are the scores of {found.name}?",
        "model": f"{found.name} {found.version}".strip(),
        "data": run.data.name,
        "made": how_made(found, run, views),
        "skipped": skipped,
        "views": views,
        "watch": found.over_time,
    }


def model_views(model: ScoredModel, table: Mapping[str, Any], run: EvaluateOptions) -> tuple[list[dict[str, Any]], list[str]]:
    """What a page shows of one pipe: of its tokens and, where it has them, of its entities; and sentences about what cannot be judged.

    RAISES C005: there is too little to judge.
    """
    from ...pages.contents import view_contents

    facts, views, skipped = facts_of(model), [], []
    for unit, judged in judged_units(model, run).items():
        name = f"{facts['component'] or 'Doc'}: {judged.called[1] if unit == 'entities' else unit}"
        if len(judged.pairs):
            check_bins(len(judged.pairs), run.bins, model.threshold)
            views.append(view_contents(model.corpus, judged, table_of_unit(table, unit), {"name": name, **facts}))
        else:
            skipped.append(f"Not judged: {name} (pipe {model.name}). The data has none that has both gold and a score.")
    return views, skipped


def facts_of(model: ScoredModel) -> dict[str, Any]:
    """About the pipe, for the page; no folder of the machine is named."""
    return {
        "pipe": model.name,
        "attr": model.attr,
        "component": model.component,
        "layer": model.layer,
        "event": model.event if model.span_groups is not None else None,
        "counted_on": model.counted_on,
        "seen": model.seen,
        "weights_changed": model.weights_changed,
    }


def tell_apart(views: list[dict[str, Any]]) -> None:
    """Add the pipe to names that several views have."""
    names = [view["name"] for view in views]
    for view, name in zip(views, names, strict=True):
        if names.count(name) > 1:
            view["name"] = f"{name} ({view['pipe']})"


def how_made(found: Judgement, run: EvaluateOptions, views: list[dict[str, Any]]) -> dict[str, str]:
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
        **{f"Pipe {model.name}": model.about for model in found.models},
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
