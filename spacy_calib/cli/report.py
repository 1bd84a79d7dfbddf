"""`spacy calib report`: one HTML page that says how true a pipeline's probabilities are on gold data."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import calib_error
from ..pipe.loading import check_readable, pipe_of
from .shared.checks import check_option
from .shared.command import choice, command
from .shared.gold import check_bins
from .shared.options import (
    FORMATS,
    FloorSeed,
    NBins,
    NGroups,
    OnlyAttr,
)
from .shared.outputs import Output, wanted_output
from .shared.results import deliver, write_text
from .shared.run import Run
from .shared.scored import ScoredModel, of_pipe, scored_models
from .shared.screen import msg, number, print_table
from .shared.seen import show_other_weights, show_seen

if TYPE_CHECKING:
    from spacy.language import Language

    from ..pages.judged import JudgedView
    from ..pipe.component import Calibrator

DEFAULT_OUTPUT = Path("report.html")


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Run):
    """What `report` judges, by what, and how the page is called."""

    needs_gold = True

    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML file for the page", show_default="report.html")
    ] = None
    attr: OnlyAttr = None
    bins: NBins = None
    groups: NGroups = None
    seed: FloorSeed = 0
    title: Annotated[str | None, typer.Option("--title", help="Title of the page; else one with the pipeline's name")] = None
    date: Annotated[
        str | None, typer.Option("--date", help="Date to put on the page; without one the same data gives the same file")
    ] = None
    watch: Annotated[
        Path | None, typer.Option("--watch", help="Windows that `calib watch` wrote, drawn over time (file or folder)")
    ] = None
    format: Annotated[str, choice(FORMATS, "--format", help="What is printed: a verdict, or all that the page shows")] = "table"

    @property
    def page(self) -> Path | None:
        """The file of the page; JSON that is printed needs none."""
        return DEFAULT_OUTPUT if self.output is None and self.format != "json" else self.output

    def outputs(self) -> list[Output]:
        return wanted_output(self.page)

    def read_files(self) -> list[Path]:
        return [] if self.watch is None else [self.watch]


@command(ReportOptions, does="The same as a page to read and pass on", example="./calibrated test.spacy -o report.html")
def report(run: ReportOptions) -> dict[str, Any]:
    """
    Write a page that shows how true the probabilities of a calibrated pipeline
    are on gold data: a verdict in one sentence, figures, diagrams, every tag,
    and the most confident errors. One HTML file that opens offline.

    RETURNS (dict): What the page shows, see `pages.page.render_report`.
    RAISES CalibError: every fault of the input.
    """
    path = run.page
    if path is not None:
        check_page(path)
    pipeline = Pipeline(Path(run.model).name)
    models = scored_models(run, lambda: pipeline.scored(run))
    views, skipped = [], pipeline.skipped
    for model in models:
        found, missing = model_views(model, run)
        views += found
        skipped += missing
    if not views:
        raise calib_error("C030", layer=models[0].layer, component=models[0].component or "the source")
    tell_apart(views)
    contents = {
        "title": run.title or f"How true are the scores of {pipeline.name}?",
        "model": f"{pipeline.name} {pipeline.version}".strip(),
        "data": run.data.name,
        "date": run.date,
        "made": how_made(pipeline, models, run, views),
        "skipped": skipped,
        "views": views,
        "watch": pipeline.over_time,
    }
    if path is not None:
        from ..pages.page import render_report

        write_text(path, render_report(contents))
    deliver(contents, lambda: show(contents, path), output=None, format=run.format, silent=run.silent)
    return contents


@dataclass
class Pipeline:
    """What the page says of MODEL as a whole: of a calibrator of scores in files no more than its name.

    skipped (list[str]): Sentences about what is not judged. over_time (dict | None): What windows show, see `windows_over_time`.
    """

    name: str
    version: str = ""
    skipped: list[str] = field(default_factory=list)
    over_time: dict[str, Any] | None = None

    def scored(self, run: ReportOptions) -> list[ScoredModel]:
        """Load it, and run each of its pipes over the data. RAISES C021, C027, C068, C069, C075, C120, C151: nothing can be judged."""
        nlp = run.begin()
        self.name, self.version = f"{nlp.meta['lang']}_{nlp.meta['name']}", nlp.meta["version"]
        pipes, self.skipped = readable_pipes(nlp) if run.attr is None else ([pipe_of(nlp, run.attr)], [])
        self.over_time = None if run.watch is None else windows_over_time(pipes, run.watch)
        return [of_pipe(pipe, *run.score(nlp, pipe, what=f"Scoring {pipe.name}")) for pipe in pipes]


def windows_over_time(pipes: Sequence[Calibrator], path: Path) -> dict[str, Any]:
    """What the page shows of windows, judged by the pipe that they belong to.

    RAISES C237: they belong to none of these. C238, C239, C243: see `read_windows`.
    """
    from ..errors import CalibError
    from ..pages.over_time import section_of
    from .shared.windows import read_windows

    for pipe in pipes:
        try:
            found = read_windows(pipe, [path]).snapshot(closing=True)
        except CalibError as error:
            if error.code not in ("C236", "C237") or pipe is pipes[-1]:
                raise
        else:
            break
    assert pipe.learned.record is not None
    return section_of(found, f"{pipe.source.component or 'scores'} on {path.name}", pipe.learned.record.accuracy)


def readable_pipes(nlp: Language) -> tuple[list[Calibrator], list[str]]:
    """The fitted pipes whose component is there and enabled, and sentences about the others.

    RAISES C021, C069: there is no such pipe.
    """
    from ..errors import CalibError
    from ..pipe.fitted import fitted_pipes

    pipes, skipped = [], []
    fitted = fitted_pipes(nlp)
    for pipe in fitted:
        try:
            check_readable(nlp, pipe)
        except CalibError as error:
            skipped.append(f"Not judged: pipe {pipe.name}. {error.message}")
        else:
            pipes.append(pipe)
    if not pipes:
        check_readable(nlp, fitted[0])
    return pipes, skipped


def tell_apart(views: list[dict[str, Any]]) -> None:
    """Add the pipe to names that several views have."""
    names = [view["name"] for view in views]
    for view, name in zip(views, names, strict=True):
        if names.count(name) > 1:
            view["name"] = f"{name} ({view['pipe']})"


def check_page(path: Path) -> None:
    """RAISES C080: what draws the pictures is not installed. C056: it is no .html file."""
    from ..pages.charts import load_altair

    load_altair()
    check_option("--output", path.suffix.lower() in (".html", ".htm"), "a file that ends in .html", path)


def model_views(model: ScoredModel, run: ReportOptions) -> tuple[list[dict[str, Any]], list[str]]:
    """What a page shows of one pipe: of its tokens and, where it has them, of its entities; and sentences about what cannot be judged.

    RAISES C005: there is too little to judge.
    """
    from ..pages.contents import view_contents

    facts, views, skipped = facts_of(model), [], []
    for unit, judged in judged_units(model, run.bins, run.groups, run.seed).items():
        name = f"{facts['component'] or 'Doc'}: {judged.called[1] if unit == 'entities' else unit}"
        if len(judged.pairs):
            check_bins(len(judged.pairs), run.bins, model.threshold)
            views.append(view_contents(model.corpus, judged, {"name": name, **facts}))
        else:
            skipped.append(f"Not judged: {name} (pipe {model.name}). The data has none that has both gold and a score.")
    return views, skipped


def judged_units(model: ScoredModel, bins: int | None, n_groups: int | None, seed: int) -> dict[str, JudgedView]:
    """ "tokens" (or "documents"), behind "entities" where the pipe has them -> what is judged, by the groups of the fit or by as many as were asked for."""
    from ..pages.judged import judged_entities, judged_tokens
    from ..pipe.registered import metrics
    from ..pipe.scorer import scorer_like

    scorer, corpus = scorer_like(model.scorer, bins, n_groups), model.corpus
    n_bins, judging, known = scorer.n_bins, scorer.judging, metrics()
    tokens = judged_tokens(corpus, model.labels, judging(model.groups, model.labels), n_bins, seed, known)
    if model.span_groups is None:
        return {tokens.kind: tokens}
    groups = judging(model.span_groups, model.span_labels)
    return {
        "entities": judged_entities(corpus, model.span_labels, groups, n_bins, seed, known, model.called),
        tokens.kind: tokens,
    }


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


def how_made(
    pipeline: Pipeline, models: Sequence[ScoredModel], run: ReportOptions, views: list[dict[str, Any]]
) -> dict[str, str]:
    """Name -> text."""
    from ..pairs.documents import by_unit

    packages = ["spacy-calib", "spacy", "numpy", "altair"]
    held = {}
    for package in packages:
        with contextlib.suppress(ImportError):
            held[package] = version(package)
    made = {
        "Pipeline": f"{pipeline.name} {pipeline.version}".strip() + f", given as {Path(run.model).name}",
        "Data": f"{run.data.name}, {_documents_line(views)} with scores",
        **{f"Pipe {model.name}": model.about for model in models},
        "Judged with": f"{views[0]['bins']} adaptive bins, seed {run.seed}; intervals by bootstrap {by_unit(**views[0]['table']['by'])}",
        "Versions": ", ".join(f"{name} {number}" for name, number in held.items()) + f", python {platform.python_version()}",
    }
    return {**made, "Date": run.date} if run.date else made


def _documents_line(views: list[dict[str, Any]]) -> str:
    return str(max(views, key=lambda view: view["documents"])["counted"])


def show(contents: dict[str, Any], path: Path | None) -> None:
    """Print the verdicts and the figures, and where the page is."""
    for view in contents["views"]:
        msg.divider(view["name"])
        show_other_weights(view["weights_changed"])
        show_seen(view["seen"])
        msg.text(f"{view['verdict']['heading']}. {view['verdict']['sentence']}")
        for sentence in view["verdict"]["warnings"]:
            msg.warn(sentence)
        for sentence in view["verdict"]["more"]:
            msg.text(sentence)
        rows = [
            (
                row["title"],
                number(row["raw"]),
                number(row["calibrated"]),
                number(row["debiased"]),
                _range(row),
                number(row["floor95"]),
            )
            for row in view["figures"]
        ]
        header = ("Figure", "Raw", "Calibrated", "Debiased", "95 % interval", "Chance, up to")
        print_table(rows, header, ("l", *"rrrrr"))
    for sentence in contents["skipped"]:
        msg.warn(sentence)
    if path is not None:
        msg.good(f"The page is at {path}; open it in a browser.")


def _range(row: dict[str, Any]) -> str:
    low, high = row["calibrated_low"], row["calibrated_high"]
    return "-" if low is None else f"{number(low)} to {number(high)}"
