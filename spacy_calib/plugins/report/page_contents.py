"""Collect the contents of a page from an evaluation, and print its verdicts."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...annotations import plain_name
from ...cli.fitting.conventions import conventions_of
from ...cli.shared.run import fit_in_words
from ...cli.shared.screen import msg

if TYPE_CHECKING:
    from ...cli.evaluating.evaluation import Evaluation, PipeEvaluation
    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator
    from ...pipe.evaluation import PipeScores


def page_contents(evaluation: Evaluation) -> dict[str, Any]:
    """Return the contents of the page, as `render_report` takes them. RAISES C005, C030: there are too few pairs."""
    views, notes = [], evaluation.notes
    for pipe, corpus, pipe_evaluation in evaluation.fitted_pipes():
        pipe_views, pipe_notes = pipe_contents(evaluation, pipe, corpus, pipe_evaluation)
        views += pipe_views
        notes = [*notes, *pipe_notes]
    if not views:
        raise evaluation.nothing_to_show()
    names = [view["name"] for view in views]
    for view, name in zip(views, names, strict=True):
        if names.count(name) > 1:
            view["name"] = f"{name} ({view['pipe']})"
    return {
        "title": f"How well calibrated are the scores of {evaluation.name}?",
        "model": f"{evaluation.name} {evaluation.version}".strip(),
        "data": evaluation.run.data.name,
        "made": describe_run(evaluation, views),
        "skipped": notes,
        "views": views,
    }


def pipe_contents(
    evaluation: Evaluation, pipe: Calibrator, corpus: ScoredCorpus, pipe_evaluation: PipeEvaluation
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return (views of a pipe's tokens and entities, sentences on units without pairs)."""
    from .contents import view_contents

    facts, views, notes = facts_of(pipe, pipe_evaluation.gold_scores), [], []
    for unit, view in pipe_evaluation.units.items():
        name = f"{facts['component'] or 'Doc'}: {view.span_words[1] if unit == 'entities' else unit}"
        if len(view.pairs):
            views.append(view_contents(corpus, view, evaluation.table_of(pipe.name, unit), {"name": name, **facts}))
            views[-1]["conventions"] = conventions_of(None if unit == "entities" else pipe_evaluation.conventions)
        else:
            notes.append(f"Not evaluated: {name} (pipe {pipe.name}). The data has none with both gold and a score.")
    return views, notes


def facts_of(pipe: Calibrator, results: PipeScores) -> dict[str, Any]:
    """Return facts about the pipe for the page, without names of folders."""
    info = pipe.fit_info
    return {
        "pipe": pipe.name,
        "attr": pipe.attr,
        "component": pipe.source.component,
        "layer": plain_name(info.layer),
        "event": info.span_event if pipe.spans.groups is not None else None,
        "counted_on": Path(info.counted_on).name,
        "seen": results.overlap,
        "weights_changed": results.weights_changed,
    }


def describe_run(evaluation: Evaluation, views: list[dict[str, Any]]) -> dict[str, str]:
    """Return the section "How this was made": term -> description."""
    from ...pairs.documents import by_unit

    versions = {}
    for package in ("spacy-calib", "spacy", "numpy"):
        with contextlib.suppress(ImportError):
            versions[package] = version(package)
    documents = max(views, key=lambda view: view["documents"])["counted"]
    resampling = by_unit(**views[0]["table"]["by"])
    return {
        "Pipeline": f"{evaluation.name} {evaluation.version}".strip() + f", given as {Path(evaluation.run.model).name}",
        "Data": f"{evaluation.run.data.name}, {documents} with scores",
        **{f"Pipe {pipe.name}": fit_in_words(pipe) for pipe, _, _ in evaluation.fitted_pipes()},
        "Evaluated with": f"{views[0]['bins']} adaptive bins; intervals by bootstrap {resampling}",
        "Versions": ", ".join(f"{name} {number}" for name, number in versions.items())
        + f", python {platform.python_version()}",
    }


def show_verdicts(contents: Mapping[str, Any]) -> None:
    """Print the verdict on each pipe, as the page begins."""
    for view in contents["views"]:
        msg.divider(f"{view['name']}: {view['verdict']['heading']}")
        msg.text(view["verdict"]["sentence"])
        for sentence in view["verdict"]["more"]:
            msg.text(sentence)
    for sentence in contents["skipped"]:
        msg.warn(sentence)
