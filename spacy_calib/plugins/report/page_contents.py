"""Make the contents of the report page from an evaluation, write the page, and print its verdicts."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...cli.fitting.conventions import page_conventions
from ...cli.shared.screen import msg
from ...metrics.sentences import with_article
from ...pairs.documents import by_unit, extent_in_words

if TYPE_CHECKING:
    from ...pipe.evaluation import Evaluation, PipeTable


def write_page(evaluation: Evaluation, paths: Sequence[Path]) -> dict[str, Any]:
    """Write an evaluation's report page to each of `paths`; return its contents. RAISES C055: a file cannot be written."""
    from ...cli.shared.writing import write_text
    from .page import render_report

    contents = page_contents(evaluation)
    text = render_report(contents)
    for path in paths:
        write_text(path, [text])
    return contents


def page_contents(evaluation: Evaluation) -> dict[str, Any]:
    """Return the contents of an evaluation's report page, for `render_report`."""
    views, notes = [], list(evaluation.notes)
    for table in evaluation.shown:
        pipe_views, pipe_notes = pipe_contents(table)
        views += pipe_views
        notes += pipe_notes
    names = [view["name"] for view in views]
    for view, name in zip(views, names, strict=True):
        if names.count(name) > 1:  # two pipes of one component
            view["name"] = f"{name} ({view['pipe']})"
    return {
        "title": f"How well calibrated are the scores of {evaluation.name}?",
        "model": f"{evaluation.name} {evaluation.version}".strip(),
        "data": evaluation.data,
        "made": describe_run(evaluation, views),
        "skipped": notes,
        "views": views,
    }


def pipe_contents(table: PipeTable) -> tuple[list[dict[str, Any]], list[str]]:
    """Return two lists: `view_contents` of a pipe's tokens and of its entities; a sentence on each without pairs."""
    from .contents import view_contents

    facts = {  # without folder names
        "pipe": table.pipe.name,
        "attr": table.pipe.attr,
        "component": table.component,
        "layer": table.layer,
        "event": table.pipe.span_event if "entities" in table.units else None,
        "counted_on": Path(table.pipe.fit_info.counted_on).name,
        "seen": table.seen,
        "weights_changed": table.weights_changed,
    }
    views, notes = [], []
    for name, unit in table.units.items():
        title = f"{facts['component'] or 'Doc'}: {unit.view.span_words[1] if name == 'entities' else name}"  # plurals
        if len(unit.view):
            views.append(view_contents(table.corpus, unit.view, unit.figures, {"name": title, **facts}))
            views[-1]["conventions"] = page_conventions(None if name == "entities" else table.conventions)
        else:
            notes.append(f"Not evaluated: {title} (pipe {table.pipe.name}). The data has none with both gold and a score.")
    return views, notes


def describe_run(evaluation: Evaluation, views: list[dict[str, Any]]) -> dict[str, str]:
    """Return the section "How this was made": term -> description. views: From `view_contents`, at least one."""
    versions = {}
    for package in ("spacy-calib", "spacy", "numpy"):
        with contextlib.suppress(ImportError):
            versions[package] = version(package)
    extent = max(views, key=lambda view: view["documents"])["counted"]  # of the largest view, such as "20 documents"
    resampling = by_unit(**views[0]["table"]["by"])  # such as "by document (20)"
    # For each pipe with cut-offs: numbers of the entities above these, with a sentence on their promised precision.
    accepted = [(table.pipe.name, table.accepted) for table in evaluation.shown if table.accepted]
    return {
        "Pipeline": f"{evaluation.name} {evaluation.version}".strip() + f", given as {evaluation.given_as}",
        "Data": f"{evaluation.data}, {extent} with scores",
        **{f"Pipe {table.pipe.name}": fit_in_words(table) for table in evaluation.shown},
        **{f"Promise of {name}": numbers["promise"] for name, numbers in accepted if numbers["promise"]},
        "Evaluated with": f"{views[0]['bins']} adaptive bins; intervals by bootstrap {resampling}",
        "Versions": ", ".join(f"{name} {number}" for name, number in versions.items())
        + f", python {platform.python_version()}",
    }


def fit_in_words(table: PipeTable) -> str:
    """Describe in one line what the pipe of an evaluation calibrates, and how it was fitted."""
    info = table.pipe.fit_info
    parts = [
        f"calibrates {info.component or 'scores on the Doc'}",
        f"method {table.pipe.learned.method}",
        f"fitted on {extent_in_words(info.unit, info.docs, info.kind.unit, info.tokens)}",
        f"scores from {info.threshold:g}",
    ]
    if "entities" in table.units:
        parts.append(f"{with_article(table.annotation.kind.span_words[0])} is right by the event {table.pipe.span_event}")
    return "; ".join(parts)


def show_verdicts(contents: Mapping[str, Any]) -> None:
    """Print the verdict on tokens and on entities of each pipe, and what was not evaluated. contents: From `page_contents`."""
    for view in contents["views"]:
        msg.divider(f"{view['name']}: {view['verdict']['heading']}")
        for sentence in (view["verdict"]["sentence"], *view["verdict"]["more"]):
            msg.text(sentence)
    for sentence in contents["skipped"]:
        msg.warn(sentence)
