"""`spacy calib rank`: what is most likely wrong comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from ..corpus.doubt import DOUBTS
from ..errors import calib_error
from .shared.checks import check_format, check_numbers, check_option
from .shared.gold import check_gold_of_corpus
from .shared.options import (
    FORMATS,
    Calibrated,
    Code,
    DocKey,
    FirstAttr,
    ForceFile,
    GoldPreproc,
    GpuId,
    NProcess,
    Silent,
    Texts,
    one_of,
)
from .shared.outputs import Output, check_files
from .shared.results import json_pieces, print_exact, print_json, write_pieces, write_text
from .shared.scoring import open_pipeline, score
from .shared.screen import number, print_table, shorten, user_errors
from .shared.seen import seen_by, show_seen, watch_for
from .shared.texts import stream_examples, text_files

if TYPE_CHECKING:
    from ..corpus.review.tasks import Task
    from ..corpus.review.units import Units
    from ..corpus.scored import ScoredCorpus
    from ..pipe.component import Calibrator

FILE_FORMATS = ("jsonl", "csv", "prodigy", "label-studio", "doccano")
UNIT_KINDS = ("token", "sentence", "entity")
_SHOWN = 20
MIN_WORDS = 3
_CURVE = tuple(share / 100 for share in range(101))
_DRAWN = ("calibrated", "raw", "margin", "entropy", "random")
_PICTURES = (".png", ".svg")
_WIDTH = 70


def rank_cli(
    # fmt: off
    model: Calibrated,
    data: Texts,
    unit: str = typer.Option(
        None, "--unit", "-u", help="What is ranked", show_default="token; entity for recognizers", **one_of(UNIT_KINDS)
    ),
    by: str = typer.Option("calibrated", "--by", help="What makes one doubtful", **one_of(DOUBTS)),
    top: int = typer.Option(None, "--top", "-n", help="How many", show_default=f"{_SHOWN} on screen, all in a file"),
    output: Path = typer.Option(
        None,
        "--output",
        "-o",
        help="File for the queue; in .csv, cells that begin with = + - @ get an apostrophe, .jsonl is exact",
    ),
    format: str = typer.Option(
        None,
        "--format",
        help="What is printed or written: table, json (all that was found), or a queue in one of the other formats",
        show_default="table; for a file by its suffix",
        **one_of((*FORMATS, *FILE_FORMATS)),
    ),
    min_words: int = typer.Option(
        None, "--min-words", help="Leave out what has fewer words", show_default=f"{MIN_WORDS} for sentences; else 0"
    ),
    repeats: bool = typer.Option(False, "--repeats", help="Keep what stands at the same place of the same sentence again"),
    plot: Path = typer.Option(None, "--plot", help="PNG or SVG: errors found against share reviewed; needs gold"),
    attr: FirstAttr = None,
    seed: int = typer.Option(0, "--seed", help="Seed of the random order"),
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
    Rank tokens, sentences or entities, most likely wrong first, and write them as
    a queue for an annotation tool. With gold it tells how soon each order finds
    the errors.
    """
    with user_errors():
        rank(
            model, data, unit=unit, by=by, top=top, min_words=min_words, repeats=repeats, output=output, format=format, plot=plot, attr=attr, seed=seed,
            gold_preproc=gold_preproc, doc_key=doc_key, n_process=n_process, gpu_id=gpu_id, code=code, force=force, silent=silent,
        )  # fmt: skip


def rank(
    model: str,
    data: Path,
    *,
    unit: str | None = None,
    by: str = "calibrated",
    top: int | None = None,
    min_words: int | None = None,
    repeats: bool = False,
    output: Path | None = None,
    format: str | None = None,
    plot: Path | None = None,
    attr: str | None = None,
    seed: int = 0,
    gold_preproc: bool = False,
    doc_key: str | None = None,
    n_process: int = 1,
    gpu_id: int = -1,
    code: Path | None = None,
    force: bool = False,
    silent: bool = True,
) -> dict[str, Any]:
    """What the command does.

    RETURNS (dict): "pipe", "unit", "by", "units": how many there are, "known": those with gold, "wrong": errors among them or None
        without gold, "expected": share of the errors that the first units should hold, for each of "shares"; "signals": the same as
        found with gold, and the average precision of each signal (None without gold); "seen": see `seen.SeenShare`; "too_short" and "repeats": units that the queue leaves out;
        "ranked": the units of the queue, see `review.formats.record_of`; a sequence that makes each record when it is read.
    RAISES CalibError: every fault of the input.
    """
    from ..corpus.made import MadeOnDemand
    from ..corpus.review.formats import record_of
    from ..corpus.review.queue import long_enough, without_repeats
    from ..corpus.review.ranking import review_order
    from ..corpus.review.tasks import tasks_of
    from ..corpus.review.units import unit_doubts, units_of

    check_option("--unit", unit is None or unit in UNIT_KINDS, f"one of {', '.join(UNIT_KINDS)}", repr(unit))
    check_option("--by", by in DOUBTS, f"one of {', '.join(DOUBTS)}", repr(by))
    check_numbers(top=top, min_words=min_words, seed=seed, n_process=n_process, gpu_id=gpu_id)
    chosen = _format_of(output, format)
    text_files(data)
    if plot is not None:
        check_picture(plot)
    check_files(written_files(output, chosen, plot), force, inputs=[data, code], model=model)
    nlp, pipe = open_pipeline(model, attr, code=code, gpu_id=gpu_id)
    kind = _unit_of(pipe, unit)
    watch = watch_for(pipe)
    examples = watch.over(stream_examples(nlp, data, gold_preproc=gold_preproc, doc_key=doc_key))
    corpus = score(nlp, pipe, examples, sentences=True, n_process=n_process, silent=silent, what="Ranking")
    check_gold_of_corpus(pipe, corpus, silent)
    units = units_of(corpus, kind)
    doubt = unit_doubts(corpus, units, by, seed)
    order = long_enough(corpus, units, review_order(doubt, unit_doubts(corpus, units, "raw")), _least(min_words, kind))
    n_long = len(order)
    order = order if repeats else without_repeats(corpus, units, order)
    n = top if top is not None else len(order) if output is not None or chosen != "table" else _SHOWN
    tasks = tasks_of(corpus, units, doubt, order[:n])
    result = {
        "pipe": pipe.name,
        "unit": kind,
        "by": by,
        **findings(corpus, units, seed),
        "seen": seen_by(pipe, watch),
        "too_short": len(units) - n_long,
        "repeats": n_long - len(order),
        "ranked": MadeOnDemand(len(tasks), lambda place: record_of(tasks[place])),
    }
    deliver_queue(result, tasks, _labels_of(pipe, corpus, kind), output, chosen, top or _SHOWN, silent)
    if plot is not None:
        draw_curves(corpus, units, by, seed, plot)
    return result


def _labels_of(pipe: Calibrator, corpus: ScoredCorpus, kind: str) -> Sequence[str]:
    """What an annotator chooses from; of a lemmatizer the lemmas that it gives here, not its edit trees."""
    if pipe.fit_info.layer == "lemma":
        return list(dict.fromkeys(corpus.names[tag] for tag in corpus.tags.tolist()))
    return pipe.lookup.span_labels() if pipe.spans.groups is not None and kind != "token" else pipe.lookup.labels()


def written_files(output: Path | None, format: str, plot: Path | None) -> list[Output]:
    """All that the command writes."""
    files = [] if output is None else [Output("--output", output)]
    if output is not None and format == "label-studio":
        files.append(Output("the labeling config", labels_file(output)))
    return files if plot is None else [*files, Output("--plot", plot)]


def labels_file(output: Path) -> Path:
    """Where the labeling config of a Label Studio project goes."""
    return output.with_suffix(".labels.xml")


def check_picture(path: Path) -> None:
    """RAISES C056: neither .png nor .svg. C061: matplotlib is not installed."""
    from ..report.plots import figure_class

    check_option("--plot", path.suffix in _PICTURES, "a file that ends in .png or .svg", path)
    figure_class()


def _format_of(output: Path | None, format: str | None) -> str:
    """RAISES C056: no such format, or none for the suffix of the output."""
    if format is None:
        if output is None:
            return "table"
        wanted = output.suffix.removeprefix(".")
        check_option(
            "--output", wanted in ("json", "jsonl", "csv"), "a .json, .jsonl or .csv file where no --format is given", output
        )
        return wanted
    check_format(format, (*FORMATS, *FILE_FORMATS))
    check_option("--format", output is None or format != "table", "one for a file where --output is given", repr(format))
    is_json = output is None or format != "json" or output.suffix == ".json"
    check_option("--output", is_json, "a file that ends in .json where --format json is given", output)
    return format


def _least(min_words: int | None, kind: str) -> int:
    """Words that a unit needs."""
    return (MIN_WORDS if kind == "sentence" else 0) if min_words is None else min_words


def _unit_of(pipe: Calibrator, unit: str | None) -> str:
    """RAISES C065: entities are asked of a pipe without any."""
    with_entities = pipe.spans.groups is not None
    if unit == "entity" and not with_entities:
        raise calib_error("C065", name=pipe.name, component=pipe.source.component)
    return unit or ("entity" if with_entities else "token")


def findings(corpus: ScoredCorpus, units: Units, seed: int) -> dict[str, Any]:
    """What is known of the order: see `rank`."""
    from ..corpus.review.ranking import SHARES, compare_signals, expected_shares
    from ..corpus.scored import UNKNOWN, WRONG

    known = bool((units.right != UNKNOWN).any())
    return {
        "units": len(units),
        "known": int((units.right != UNKNOWN).sum()),
        "wrong": int((units.right == WRONG).sum()) if known else None,
        "expected_wrong": float((1 - units.calibrated).sum()),
        "shares": list(SHARES),
        "expected": expected_shares(units),
        "signals": [asdict(row) for row in compare_signals(corpus, units, seed=seed)] if known else None,
    }


def draw_curves(corpus: ScoredCorpus, units: Units, by: str, seed: int, path: Path) -> None:
    """by (str): Drawn besides the usual signals. RAISES C055: the picture cannot be written. C076: there is no gold."""
    from ..corpus.review.ranking import compare_signals
    from ..report.plots import picture_bytes
    from ..report.review_plots import found_curves
    from .shared.atomic import write_file

    rows = compare_signals(corpus, units, _CURVE, tuple(dict.fromkeys((*_DRAWN, by))), seed)
    ax = found_curves(
        _CURVE, {row.by: [np.nan if share is None else share for share in row.found] for row in rows}, unit=units.kind
    )
    write_file(path, picture_bytes(ax.figure, path.suffix, 120))


def deliver_queue(
    result: dict[str, Any],
    tasks: Sequence[Task],
    labels: Sequence[str],
    output: Path | None,
    format: str,
    shown: int,
    silent: bool,
) -> None:
    """Write the queue to `output`, or print it; a file goes with a table on the screen, but JSON, which is all that is printed then.

    shown (int): Rows of the table at most.
    """
    from ..corpus.review.formats import WRITERS, label_studio_config
    from .shared.screen import msg

    if output is not None:
        write_pieces(output, json_pieces(result) if format == "json" else WRITERS[format](tasks))
        if format == "label-studio":
            write_text(labels_file(output), label_studio_config(labels))
    if silent:
        return
    if format == "json":
        print_json(result)
    elif output is not None or format == "table":
        show_ranking(result, output, shown)
        if output is not None and format == "label-studio":
            msg.good(f"Labeling config: {labels_file(output)}")
    else:
        print_exact(WRITERS[format](tasks), json=format != "csv")


def show_ranking(result: dict[str, Any], output: Path | None, shown: int = _SHOWN) -> None:
    """Print the first units and what is known of the order. shown (int): How many units."""
    from .shared.screen import msg

    show_seen(result["seen"])

    plural = {"token": "tokens", "sentence": "sentences", "entity": "entities"}[result["unit"]]
    msg.divider(f"{result['units']:,} {plural}, most doubtful first (by {result['by']})")
    # A sentence has neither a label of its own nor a text around it; without gold nothing is known to be right.
    left_out = {*(("Label", "In") if result["unit"] == "sentence" else ()), *(("Right",) if not result["known"] else ())}
    header = ("#", "P(right)", result["unit"].capitalize(), "Label", "Right", "In")
    kept = [i for i, name in enumerate(header) if name not in left_out]
    rows = [[_cells(record)[i] for i in kept] for record in result["ranked"][:shown]]
    aligns = tuple("rrllll"[i] for i in kept)
    msg.table(rows, header=[header[i] for i in kept], divider=True, aligns=aligns, max_col=_WIDTH)
    if output is not None and len(result["ranked"]) > shown:
        msg.text(f"... and {len(result['ranked']) - shown:,} more in {output}")
    for left_out, why in (
        (result["too_short"], "shorter than --min-words"),
        (result["repeats"], "repeats (--repeats keeps them)"),
    ):
        if left_out:
            msg.text(f"Left out: {left_out:,} {why}")
    _show_signals(result)
    if output is not None:
        msg.good(f"{len(result['ranked']):,} {plural}: {output}")


def _cells(record: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    whole = record["unit"] == "sentence"
    return (
        f"{record['rank']}",
        "<0.001" if record["score"] < 0.001 else number(record["score"], 3),
        shorten(record["focus"], _WIDTH if whole else 24),
        ", ".join(mark["label"] for mark in record["marks"]),
        {None: "", True: "yes", False: f"no, {record['gold']}" if record["gold"] else "no"}[record["right"]],
        shorten(record["text"], 60),
    )


def _show_signals(result: dict[str, Any]) -> None:
    from .shared.screen import msg

    def share(value: float | None) -> str:
        return number(None if value is None else 100 * value, 1)

    expected = ("expected", "-", *map(share, result["expected"]))
    found = [(row["by"], number(row["average_precision"]), *map(share, row["found"])) for row in result["signals"] or ()]
    header = ("% of errors in the first", "Avg. precision", *(f"{100 * part:g} %" for part in result["shares"]))
    print_table([expected, *found], header, ("l", *"r" * (len(header) - 1)))
    judged = "" if result["known"] == result["units"] else f" of the {result['known']:,} that have gold"
    wrong = "" if result["wrong"] is None else f"; by the gold {result['wrong']:,}{judged} are"
    msg.text(f"By their scores about {result['expected_wrong']:,.0f} are wrong{wrong}.")
