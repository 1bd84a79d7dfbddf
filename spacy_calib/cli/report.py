"""`spacy calib report`: one HTML page that says how true a pipeline's probabilities are on gold data."""

from __future__ import annotations

import contextlib
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import calib_error
from .shared.checks import check_format, check_numbers, check_option
from .shared.examples import data_files
from .shared.gold import check_bins, check_gold_of_corpus
from .shared.loading import check_readable, fitted_pipes
from .shared.options import (
    FORMATS,
    Calibrated,
    Code,
    DocKey,
    FloorSeed,
    ForceFile,
    Gold,
    GoldPreproc,
    GpuId,
    NBins,
    NGroups,
    NProcess,
    OnlyAttr,
    Silent,
    one_of,
)
from .shared.outputs import check_files, wanted_output
from .shared.results import deliver, write_text
from .shared.scoring import open_model, pipe_of, score
from .shared.screen import number, print_table, user_errors
from .shared.seen import seen_by, show_other_weights, show_seen, watch_for
from .shared.texts import stream_examples

if TYPE_CHECKING:
    from spacy.language import Language

    from ..corpus.scored import ScoredCorpus
    from ..pipe.component import Calibrator
    from ..report.judged import JudgedView

DEFAULT_OUTPUT = Path("report.html")


def report_cli(
    # fmt: off
    model: Calibrated,
    data: Gold,
    output: Path = typer.Option(None, "--output", "-o", help="HTML file for the page", show_default="report.html"),
    attr: OnlyAttr = None,
    bins: NBins = None,
    groups: NGroups = None,
    seed: FloorSeed = 0,
    title: str = typer.Option(None, "--title", help="Title of the page; else one with the pipeline's name"),
    date: str = typer.Option(None, "--date", help="Date to put on the page; without one the same data gives the same file"),
    format: str = typer.Option(
        "table", "--format", help="What is printed: a verdict, or all that the page shows", **one_of(FORMATS)
    ),
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = False,
    # fmt: on
) -> None:
    """
    Write a page that shows how true the probabilities of a calibrated pipeline
    are on gold data: a verdict in one sentence, figures, diagrams, every tag,
    and the most confident errors. One HTML file that opens offline.
    """
    with user_errors():
        report(
            model, data, output=output, attr=attr, bins=bins, groups=groups, seed=seed, title=title, date=date, format=format,
            gold_preproc=gold_preproc, doc_key=doc_key, n_process=n_process, gpu_id=gpu_id, code=code, force=force, silent=silent,
        )  # fmt: skip


def report(
    model: str,
    data: Path,
    *,
    output: Path | None = None,
    attr: str | None = None,
    bins: int | None = None,
    groups: int | None = None,
    seed: int = 0,
    title: str | None = None,
    date: str | None = None,
    format: str = "table",
    gold_preproc: bool = False,
    doc_key: str | None = None,
    n_process: int = 1,
    gpu_id: int = -1,
    code: Path | None = None,
    force: bool = False,
    silent: bool = True,
) -> dict[str, Any]:
    """What the command does.

    output (Path | None): None writes report.html, and with format "json" no page.
    RETURNS (dict): What the page shows, see `report.page.render_report`.
    RAISES CalibError: every fault of the input.
    """
    check_format(format)
    check_numbers(bins=bins, groups=groups, seed=seed, n_process=n_process, gpu_id=gpu_id)
    path = DEFAULT_OUTPUT if output is None and format != "json" else output
    if path is not None:
        check_page(path)
    data_files(data)
    check_files(wanted_output(path), force, inputs=[data, code], model=model)
    nlp = open_model(model, code=code, gpu_id=gpu_id)
    pipes, skipped = readable_pipes(nlp) if attr is None else ([pipe_of(nlp, attr)], [])
    views: list[dict[str, Any]] = []
    for pipe in pipes:
        found, missing = pipe_views(
            nlp, pipe, data, bins, groups, seed, gold_preproc=gold_preproc, doc_key=doc_key, n_process=n_process, silent=silent
        )
        views += found
        skipped += missing
    if not views:
        from ..doc.annotations import plain_name

        raise calib_error(
            "C030", layer=plain_name(pipes[0].fit_info.layer), component=pipes[0].source.component or "the source"
        )
    tell_apart(views)
    name = f"{nlp.meta['lang']}_{nlp.meta['name']}"
    contents = {
        "title": title or f"How true are the scores of {name}?",
        "model": f"{name} {nlp.meta['version']}",
        "data": data.name,
        "date": date,
        "made": how_made(nlp, pipes, model, data, views, seed, date),
        "skipped": skipped,
        "views": views,
    }
    if path is not None:
        from ..report.page import render_report

        write_text(path, render_report(contents))
    deliver(contents, lambda: show(contents, path), output=None, format=format, silent=silent)
    return contents


def readable_pipes(nlp: Language) -> tuple[list[Calibrator], list[str]]:
    """The fitted pipes whose component is there and enabled, and sentences about the others.

    RAISES C021, C069: there is no such pipe.
    """
    from ..errors import CalibError

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
    from ..report.charts import load_altair

    load_altair()
    check_option("--output", path.suffix.lower() in (".html", ".htm"), "a file that ends in .html", path)


def pipe_views(
    nlp: Language,
    pipe: Calibrator,
    data: Path,
    bins: int | None,
    n_groups: int | None,
    seed: int,
    *,
    gold_preproc: bool,
    doc_key: str | None,
    n_process: int,
    silent: bool,
) -> tuple[list[dict[str, Any]], list[str]]:
    """What a page shows of one pipe: of its tokens and, where it has them, of its entities; and sentences about what cannot be judged.

    RAISES C005, C075, C151: there is too little, or nothing, to judge.
    """
    from ..report.contents import view_contents

    watch = watch_for(pipe)
    examples = watch.over(stream_examples(nlp, data, gold_preproc=gold_preproc, doc_key=doc_key))
    corpus = score(nlp, pipe, examples, sentences=True, n_process=n_process, silent=silent, what=f"Scoring {pipe.name}")
    check_gold_of_corpus(pipe, corpus, silent)
    facts = {**pipe_facts(pipe), "seen": seen_by(pipe, watch), "weights_changed": pipe.lookup.weights_changed()}
    views, skipped = [], []
    for unit, judged in judged_units(pipe, corpus, bins, n_groups, seed).items():
        name = f"{facts['component'] or 'Doc'}: {unit}"
        if len(judged.pairs):
            check_bins(len(judged.pairs), bins, pipe.threshold)
            views.append(view_contents(corpus, judged, {"name": name, **facts}))
        else:
            skipped.append(f"Not judged: {name} (pipe {pipe.name}). The data has none that has both gold and a score.")
    return views, skipped


def judged_units(
    pipe: Calibrator, corpus: ScoredCorpus, bins: int | None, n_groups: int | None, seed: int
) -> dict[str, JudgedView]:
    """ "tokens", behind "entities" where the pipe has them -> what is judged, by the groups of the fit or by as many as were asked for."""
    from ..pipe.registered import metrics
    from ..pipe.scorer import scorer_like
    from ..report.judged import judged_entities, judged_tokens

    assert pipe.groups is not None
    scorer = scorer_like(pipe.scorer, bins, n_groups)
    n_bins, judging, known = scorer.n_bins, scorer.judging, metrics()
    labels = pipe.lookup.labels()
    tokens = judged_tokens(corpus, labels, judging(pipe.groups, labels), n_bins, seed, known)
    if pipe.spans.groups is None:
        return {"tokens": tokens}
    span_labels = pipe.lookup.span_labels()
    groups = judging(pipe.spans.groups, span_labels)
    return {"entities": judged_entities(corpus, span_labels, groups, n_bins, seed, known), "tokens": tokens}


def pipe_facts(pipe: Calibrator) -> dict[str, Any]:
    """About the pipe, for the page; no folder of the machine is named."""
    from ..doc.annotations import plain_name

    return {
        "pipe": pipe.name,
        "attr": pipe.attr,
        "component": pipe.source.component,
        "layer": plain_name(pipe.fit_info.layer),
        "event": pipe.event if pipe.spans.groups is not None else None,
        "counted_on": Path(pipe.fit_info.counted_on).name,
    }


def how_made(
    nlp: Language, pipes: list[Calibrator], model: str, data: Path, views: list[dict[str, Any]], seed: int, date: str | None
) -> dict[str, str]:
    """Name -> text."""
    from ..pairs.documents import by_unit

    packages = ["spacy-calib", "spacy", "numpy", "altair"]
    held = {}
    for package in packages:
        with contextlib.suppress(ImportError):
            held[package] = version(package)
    made = {
        "Pipeline": f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}, given as {Path(model).name}",
        "Data": f"{data.name}, {_documents_line(views)} with scores",
        **{f"Pipe {pipe.name}": _fit_line(pipe) for pipe in pipes},
        "Judged with": f"{views[0]['bins']} adaptive bins, seed {seed}; intervals by bootstrap {by_unit(**views[0]['table']['by'])}",
        "Versions": ", ".join(f"{name} {number}" for name, number in held.items()) + f", python {platform.python_version()}",
    }
    return {**made, "Date": date} if date else made


def _documents_line(views: list[dict[str, Any]]) -> str:
    from ..pairs.documents import counted

    return counted(**max((view["table"]["by"] for view in views), key=lambda by: by["n"]))


def _fit_line(pipe: Calibrator) -> str:
    from ..pairs.documents import counted

    info = pipe.fit_info
    parts = [
        f"calibrates {info.component or 'scores on the Doc'}",
        f"method {info.method}" + (f" after {info.scaling['name']}" if info.scaling else ""),
        f"fitted on {counted(info.unit, info.docs)}, {info.tokens:,} tokens",
        f"scores from {info.threshold:g}",
    ]
    if pipe.spans.groups is not None:
        parts.append(f"an entity is right by the event {pipe.event}")
    return "; ".join(parts)


def show(contents: dict[str, Any], path: Path | None) -> None:
    """Print the verdicts and the figures, and where the page is."""
    from .shared.screen import msg

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
