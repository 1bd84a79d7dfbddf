"""List predictions to check, the most likely wrong first.

`spacy calib rank`: what is most likely wrong comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from ...cli.shared.command import check_option, command, option
from ...cli.shared.evidence import show_seen
from ...cli.shared.examples import holds_gold
from ...cli.shared.options import (
    CalibratedModel,
    ChosenAttr,
    ChosenComponent,
    Code,
    Columns,
    ForceFile,
    GoldPreproc,
    GpuId,
    NProcess,
    RawCells,
    Silent,
    Texts,
)
from ...cli.shared.outputs import Output
from ...cli.shared.run import Run, unit_of
from ...cli.shared.screen import TableColumn, in_percent, msg, number, print_table, shorten, show_rows
from ...cli.shared.writing import write_picture
from ...pairs.documents import DOCUMENT
from .messages import calib_error
from .queue.orders import REVIEW
from .queues import MIN_WORDS, MinWords, QueueFile, QueueFormat, QueueOutput, Top, Unit, deliver_queue

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator
    from .queue.choosing import Plan, Queue
    from .queue.tasks import Task

SHOWN = 20
_CURVE = tuple(share / 100 for share in range(101))
_DRAWN = ("calibrated", "raw", "margin", "entropy", "random")
_WIDTH = 70


NOT_ACCEPTED_HELP = "Only entities below their cut-off of `calib threshold --apply`"


@command(example="./calibrated test.spacy --unit sentence --format prodigy -o queue.jsonl")
def rank(
    model: CalibratedModel,
    data: Texts,
    *,
    order: Annotated[str, option("Sort key", words=tuple(REVIEW))] = "calibrated",
    repeats: Annotated[bool, option("Keep the rows of repeated sentences")] = False,
    not_accepted: Annotated[bool, option(NOT_ACCEPTED_HELP)] = False,
    plot: Annotated[Path | None, option("PNG or SVG file: errors found against share reviewed; needs gold")] = None,
    unit: Unit = None,
    top: Top = None,
    min_words: MinWords = None,
    output: QueueFile = None,
    format: QueueFormat = "table",
    raw_cells: RawCells = False,
    component: ChosenComponent = None,
    attr: ChosenAttr = None,
    columns: Columns = None,
    gold_preproc: GoldPreproc = False,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Rank tokens, sentences, entities or documents, most likely wrong first, and write them as a queue for an annotation tool.
    With gold it shows how soon each order finds the errors.

    RETURNS (dict): "pipe", "unit", "order"; what is known of the orders, see `plugins.review.queue.findings.findings`; "seen": see `pairs.seen_texts.SeenShare`; "accepted",
        "too_short" and "repeats": units that the queue leaves out; "ranked": the units of the queue, see `plugins.review.queue.formats.record_of`; a sequence
        that makes each record when it is read.
    RAISES CalibError: every fault of the input.
    """
    from .queue.choosing import Plan

    queue_output = QueueOutput(output, format, raw_cells, silent)
    of_entities = unit in (None, "entity") or not not_accepted
    check_option("--not-accepted", of_entities, f"left out with --unit {unit}", "it")
    check_option("--plot", plot is None or plot.suffix in (".png", ".svg"), "a file that ends in .png or .svg", plot)
    how: dict[str, Any] = {"gold_preproc": gold_preproc, "n_process": n_process, "gpu_id": gpu_id, "code": code}
    run = Run(model, data, attr=attr, component=component, columns=columns, force=force, silent=silent, **how)
    nlp = run.begin([*queue_output.files(), *([] if plot is None else [Output("--plot", plot)])])
    unit = "entity" if not_accepted else unit
    pipe = run.pipe(nlp, unit=unit, flag="--not-accepted" if not_accepted else "--unit")
    shown = SHOWN if top is None and output is None and format == "table" else top
    kind = unit_of(pipe, unit, whole=True)
    plan = Plan(
        kind,
        REVIEW[order],
        raw_first=True,
        min_words=(MIN_WORDS if kind == "sentence" else 0) if min_words is None else min_words,
        below_only=not_accepted,
        repeats=repeats,
        n=shown,
    )
    seen, corpora = _score(run, nlp, pipe, plan)
    queue, tasks, labels, result = rank_units(pipe, corpora, plan, order)
    result["seen"] = seen
    deliver_queue(queue_output, pipe, result, tasks, labels, lambda: show_ranking(result, top, output))
    if plot is not None:
        draw_curves(queue, order, plot)
    return result


def _score(run: Run, nlp: Language, pipe: Calibrator, plan: Plan) -> tuple[dict[str, Any] | None, Iterable[ScoredCorpus]]:
    """The overlap with the fit data, and the scored texts: all at once for a whole queue or gold. RAISES C531: no cut-offs."""
    if plan.below_only and (pipe.spans.cutoffs or pipe.tokens.label_cutoffs) is None:
        raise calib_error("C531", name=pipe.name)
    if plan.n is not None and not holds_gold(run.data):
        return None, run.score_blocks(nlp, pipe, title="Ranking")
    corpus, seen = run.score(nlp, pipe, title="Ranking")
    return seen, [corpus]


def rank_units(
    pipe: Calibrator, corpora: Iterable[ScoredCorpus], plan: Plan, order: str
) -> tuple[Queue, Sequence[Task], Iterable[str], dict[str, Any]]:
    """The queue, its tasks, the labels that have a score, and what `rank` returns."""
    from ...pipe.label_names import shown_names
    from .queue.choosing import queue_of
    from .queue.findings import UnitSums, findings
    from .queue.formats import record_of
    from .queue.tasks import tasks_of
    from .stored import MadeOnDemand

    sums, annotation = UnitSums(plan), pipe.source.annotation(pipe.lookup.component())
    queue = queue_of(corpora, plan, sums.add)
    tasks, whole = tasks_of(queue, each_asked=annotation.spans_are_units, gold_names=shown_names(pipe)), queue.n_blocks == 1
    left_out = queue.left_out if whole else sums.left_out_of_all()
    result = {
        "pipe": pipe.name,
        "unit": plan.kind,
        "order": order,
        **(findings(queue.corpus, queue.units) if whole else sums.findings()),
        "seen": None,
        **{key: left_out[key] for key in ("accepted", "too_short", "repeats")},
        "ranked": MadeOnDemand(len(tasks), lambda place: record_of(tasks[place])),
    }
    return queue, tasks, queue.corpus.tags_met() if whole else sums.tags, result


def draw_curves(queue: Queue, order: str, path: Path) -> None:
    """How soon the usual orders, and the one that was asked for, find the errors. RAISES C055: the picture cannot be written. C076: there is no gold."""
    from .found_curves import found_curves
    from .queue.findings import compare_orders

    rows = compare_orders(queue.corpus, queue.units, _CURVE, tuple(dict.fromkeys((*_DRAWN, order))))
    shares = {row.order: [np.nan if share is None else share for share in row.found] for row in rows}
    ax = found_curves(_CURVE, shares, unit=queue.units.kind)
    write_picture(path, ax.figure, dpi=120)


# What is printed


def show_ranking(result: dict[str, Any], top: int | None, output: Path | None) -> None:
    """Print the first units and what is known of the order."""
    show_seen(result["seen"])
    plural = "entities" if result["unit"] == "entity" else f"{result['unit']}s"
    order = "in random order" if result["order"] == "random" else f"most doubtful first (by {result['order']})"
    msg.divider(f"{result['units']:,} {plural}, {order}")
    shown, n = top or SHOWN, len(result["ranked"])
    show_rows(result["ranked"][:shown], _columns(result["unit"], bool(result["known"])))
    if output is not None and n > shown:
        msg.text(f"... and {n - shown:,} more in {output}")
    for key, why in _LEFT_OUT.items():
        if result[key]:
            msg.text(f"Left out: {result[key]:,} {why}")
    expected = ("expected", "-", *map(in_percent, result["expected"]))
    found = [
        (row["order"], number(row["average_precision"]), *map(in_percent, row["found"])) for row in result["signals"] or ()
    ]
    header = ("% of errors in the first", "Avg. precision", *(f"{100 * part:g} %" for part in result["shares"]))
    print_table([expected, *found], header, ("l", *"r" * (len(header) - 1)))
    judged = "" if result["known"] == result["units"] else f" of the {result['known']:,} that have gold"
    wrong = "" if result["wrong"] is None else f"; by the gold {result['wrong']:,}{judged} are"
    msg.text(f"By their scores about {result['expected_wrong']:,.0f} are wrong{wrong}.")
    if output is not None:
        msg.good(f"{n:,} {plural}: {output}")


_LEFT_OUT = {
    "accepted": "accepted (--not-accepted)",
    "too_short": "shorter than --min-words",
    "repeats": "repeats (--repeats keeps them)",
}


def _columns(unit: str, known: bool) -> list[TableColumn]:
    """A sentence has neither a label of its own nor a text around it, nor has a document; without gold nothing is known to be right."""
    whole = unit in ("sentence", DOCUMENT)
    columns = {
        "#": TableColumn("#", "rank"),
        "P(right)": TableColumn("P(right)", "score", lambda score: "<0.001" if score < 0.001 else number(score, 3)),
        "Unit": TableColumn(
            unit.capitalize(), "text" if whole else "focus", lambda text: shorten(text, _WIDTH if whole else 24), "l"
        ),
        "Label": TableColumn("Label", "marks", lambda marks: ", ".join(mark["label"] for mark in marks), "l"),
        "Right": TableColumn("Right", "", _said_of_gold, "l"),
        "In": TableColumn("In", "text", lambda text: shorten(text, 60), "l"),
    }
    left_out = {"sentence": ("Label", "In"), DOCUMENT: ("In",)}.get(unit, ()) + (() if known else ("Right",))
    return [column for title, column in columns.items() if title not in left_out]


def _said_of_gold(record: dict[str, Any]) -> str:
    right, gold = record["right"], record["gold"]
    return {None: "", True: "yes", False: f"no, {gold}" if gold else "no"}[right]
