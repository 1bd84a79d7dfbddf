"""`spacy calib rank`: what is most likely wrong comes first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from ..corpus.queue.orders import REVIEW
from ..errors import calib_error
from ..pairs.documents import DOCUMENT
from .shared.checks import check_option
from .shared.command import option, options_command
from .shared.evidence import show_seen
from .shared.examples import holds_gold
from .shared.outputs import Output
from .shared.queues import MIN_WORDS, QueueOptions, deliver_queue
from .shared.scored import ScoredModel, of_pipe
from .shared.screen import Column, in_percent, msg, number, print_table, shorten, show_rows
from .shared.writing import write_picture

if TYPE_CHECKING:
    from ..corpus.queue.choosing import Plan, Queue
    from ..corpus.scored import ScoredCorpus

SHOWN = 20
_CURVE = tuple(share / 100 for share in range(101))
_DRAWN = ("calibrated", "raw", "margin", "entropy", "random")
_WIDTH = 70


@dataclass(frozen=True)
class RankOptions(QueueOptions):
    """What `rank` puts into which order, and how it is shown or written."""

    doc_key: ClassVar[None] = None  # type: ignore[misc]  # no unit is of a document more than of another

    _: KW_ONLY
    order: Annotated[str, option("What the order goes by", words=tuple(REVIEW))] = "calibrated"
    repeats: Annotated[bool, option("Keep repeats: the same place of a sentence that occurs again")] = False
    not_accepted: Annotated[bool, option("Only entities below the cut-off that `calib threshold --apply` found for them")] = (
        False
    )
    plot: Annotated[Path | None, option("PNG or SVG: errors found against share reviewed; needs gold")] = None

    def check_options(self) -> None:
        """RAISES C056: see QueueOptions; or a picture is neither .png nor .svg."""
        super().check_options()
        of_entities = self.unit in (None, "entity") or not self.not_accepted
        check_option("--not-accepted", of_entities, f"left out with --unit {self.unit}", "it")
        if self.plot is not None:
            check_option("--plot", self.plot.suffix in (".png", ".svg"), "a file that ends in .png or .svg", self.plot)

    def outputs(self) -> list[Output]:
        return super().outputs() + ([] if self.plot is None else [Output("--plot", self.plot)])

    def plan(self, model: ScoredModel) -> Plan:
        """The queue that is wanted. RAISES C065, C265, C531: the pipe has no such units, or no cut-offs."""
        from ..corpus.queue.choosing import Plan

        kind = model.unit_of("entity" if self.not_accepted else self.unit, whole=True)
        return Plan(
            kind,
            REVIEW[self.order],
            raw_first=True,
            min_words=(MIN_WORDS if kind == "sentence" else 0) if self.min_words is None else self.min_words,
            below_only=self.not_accepted,
            repeats=self.repeats,
            n=SHOWN if self.top is None and self.output is None and self.format == "table" else self.top,
        )


@options_command(
    RankOptions,
    example="./calibrated test.spacy --unit sentence --format prodigy -o queue.jsonl",
)
def rank(run: RankOptions) -> dict[str, Any]:
    """
    Rank tokens, sentences, entities or documents, most likely wrong first, and
    write them as a queue for an annotation tool. With gold it tells how soon each
    order finds the errors.

    RETURNS (dict): "pipe", "unit", "order"; what is known of the orders, see `corpus.queue.findings.findings`; "seen": see `expect.record.SeenShare`; "accepted",
        "too_short" and "repeats": units that the queue leaves out; "ranked": the units of the queue, see `corpus.queue.formats.record_of`; a sequence
        that makes each record when it is read.
    RAISES CalibError: every fault of the input.
    """
    from ..corpus.queue.choosing import queue_of
    from ..corpus.queue.findings import UnitSums, findings
    from ..corpus.queue.formats import record_of
    from ..corpus.queue.tasks import tasks_of
    from ..corpus.stored import MadeOnDemand

    model, plan, corpora = _scored(run)
    sums = UnitSums(plan)
    queue = queue_of(corpora, plan, sums.add)
    tasks, whole = tasks_of(queue, each_asked=model.spans_are_units), queue.n_blocks == 1
    left_out = queue.left_out if whole else sums.left_out_of_all()
    result = {
        "pipe": model.name,
        "unit": plan.kind,
        "order": run.order,
        **(findings(queue.corpus, queue.units) if whole else sums.findings()),
        "seen": model.seen,
        **{key: left_out[key] for key in ("accepted", "too_short", "repeats")},
        "ranked": MadeOnDemand(len(tasks), lambda place: record_of(tasks[place])),
    }
    met = queue.corpus.tags_met() if whole else sums.tags
    deliver_queue(run, model, result, tasks, met, lambda: show_ranking(result, run))
    if run.plot is not None:
        draw_curves(queue, run)
    return result


def _scored(run: RankOptions) -> tuple[ScoredModel, Plan, Iterable[ScoredCorpus]]:
    """What is known of the pipe, the queue that is wanted, and the scored texts; a whole queue, and one of gold, is of all of them at once."""
    nlp, pipe = run.open()
    model = of_pipe(pipe)
    plan = run.plan(model)
    if run.not_accepted and (pipe.spans.cutoffs or pipe.tokens.label_cutoffs) is None:
        raise calib_error("C531", name=pipe.name)
    if plan.n is not None and not holds_gold(run.data):
        return model, plan, run.score_blocks(nlp, pipe, what="Ranking")
    corpus, seen = run.score(nlp, pipe, what="Ranking")
    return replace(model, seen=seen), plan, [corpus]


def draw_curves(queue: Queue, run: RankOptions) -> None:
    """How soon the usual orders, and the one that was asked for, find the errors. RAISES C055: the picture cannot be written. C076: there is no gold."""
    from ..corpus.queue.findings import compare_orders
    from ..pages.series_plots import found_curves

    assert run.plot is not None
    rows = compare_orders(queue.corpus, queue.units, _CURVE, tuple(dict.fromkeys((*_DRAWN, run.order))))
    found = {row.order: [np.nan if share is None else share for share in row.found] for row in rows}
    ax = found_curves(_CURVE, found, unit=queue.units.kind)
    write_picture(run.plot, ax.figure, dpi=120)


# What is printed


def show_ranking(result: dict[str, Any], run: RankOptions) -> None:
    """Print the first units and what is known of the order."""
    show_seen(result["seen"])
    plural = "entities" if result["unit"] == "entity" else f"{result['unit']}s"
    order = "in random order" if result["order"] == "random" else f"most doubtful first (by {result['order']})"
    msg.divider(f"{result['units']:,} {plural}, {order}")
    shown, n = run.top or SHOWN, len(result["ranked"])
    show_rows(result["ranked"][:shown], _columns(result["unit"], bool(result["known"])))
    if run.output is not None and n > shown:
        msg.text(f"... and {n - shown:,} more in {run.output}")
    for key, why in _LEFT_OUT.items():
        if result[key]:
            msg.text(f"Left out: {result[key]:,} {why}")
    _show_signals(result)
    if run.output is not None:
        msg.good(f"{n:,} {plural}: {run.output}")


_LEFT_OUT = {
    "accepted": "accepted (--not-accepted)",
    "too_short": "shorter than --min-words",
    "repeats": "repeats (--repeats keeps them)",
}


def _columns(unit: str, known: bool) -> list[Column]:
    """A sentence has neither a label of its own nor a text around it, nor has a document; without gold nothing is known to be right."""
    whole = unit in ("sentence", DOCUMENT)
    columns = {
        "#": Column("#", "rank"),
        "P(right)": Column("P(right)", "score", lambda score: "<0.001" if score < 0.001 else number(score, 3)),
        "Unit": Column(
            unit.capitalize(), "text" if whole else "focus", lambda text: shorten(text, _WIDTH if whole else 24), "l"
        ),
        "Label": Column("Label", "marks", lambda marks: ", ".join(mark["label"] for mark in marks), "l"),
        "Right": Column("Right", "", _said_of_gold, "l"),
        "In": Column("In", "text", lambda text: shorten(text, 60), "l"),
    }
    left_out = {"sentence": ("Label", "In"), DOCUMENT: ("In",)}.get(unit, ()) + (() if known else ("Right",))
    return [column for title, column in columns.items() if title not in left_out]


def _said_of_gold(record: dict[str, Any]) -> str:
    right, gold = record["right"], record["gold"]
    return {None: "", True: "yes", False: f"no, {gold}" if gold else "no"}[right]


def _show_signals(result: dict[str, Any]) -> None:
    expected = ("expected", "-", *map(in_percent, result["expected"]))
    found = [
        (row["order"], number(row["average_precision"]), *map(in_percent, row["found"])) for row in result["signals"] or ()
    ]
    header = ("% of errors in the first", "Avg. precision", *(f"{100 * part:g} %" for part in result["shares"]))
    print_table([expected, *found], header, ("l", *"r" * (len(header) - 1)))
    judged = "" if result["known"] == result["units"] else f" of the {result['known']:,} that have gold"
    wrong = "" if result["wrong"] is None else f"; by the gold {result['wrong']:,}{judged} are"
    msg.text(f"By their scores about {result['expected_wrong']:,.0f} are wrong{wrong}.")
