"""`spacy calib rank`: what is most likely wrong comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..corpus.doubt import DOUBTS
from ..pairs.documents import DOCUMENT
from .ranking.units import MIN_WORDS, findings, findings_of_sums, in_order, left_out_of, ranked, unit_of
from .shared.checks import check_option, check_raw_cells
from .shared.command import choice, command
from .shared.options import (
    FORMATS,
    Columns,
    FirstAttr,
    RawCells,
    Texts,
)
from .shared.outputs import Output
from .shared.queues import TOOLS, labels_file, labels_of, queue_outputs, queue_text, write_queue
from .shared.results import json_pieces, print_exact, print_json, write_pieces
from .shared.run import Run
from .shared.scored import scored_models
from .shared.screen import msg, number, print_table, shorten
from .shared.seen import show_seen

if TYPE_CHECKING:
    from ..corpus.review.sums import UnitSums
    from ..corpus.review.tasks import Task
    from ..corpus.review.units import Units
    from ..corpus.scored import ScoredCorpus

FILE_FORMATS = ("jsonl", "csv", *TOOLS)
UNIT_KINDS = ("token", "sentence", "entity", "document")
SHOWN = 20
_CURVE = tuple(share / 100 for share in range(101))
_DRAWN = ("calibrated", "raw", "margin", "entropy", "random")
_PICTURES = (".png", ".svg")
_WIDTH = 70


@dataclass(frozen=True)
class RankOptions(Run):
    """What `rank` puts into which order, and how it is shown or written."""

    data: Texts
    _: KW_ONLY
    unit: Annotated[
        str | None,
        choice(
            UNIT_KINDS,
            "--unit",
            "-u",
            help="What is ranked",
            show_default="token; entity for recognizers, document for text categories",
        ),
    ] = None
    by: Annotated[str, choice(DOUBTS, "--by", help="What makes one doubtful")] = "calibrated"
    top: Annotated[
        int | None, typer.Option("--top", "-n", help="How many", show_default=f"{SHOWN} on screen, all in a file")
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File for the queue",
        ),
    ] = None
    format: Annotated[
        str | None,
        choice(
            (*FORMATS, *FILE_FORMATS),
            "--format",
            help="What is printed or written: table, json (all that was found), or a queue in one of the other formats",
            show_default="table; for a file by its suffix",
        ),
    ] = None
    raw_cells: RawCells = False
    min_words: Annotated[
        int | None,
        typer.Option("--min-words", help="Leave out what has fewer words", show_default=f"{MIN_WORDS} for sentences; else 0"),
    ] = None
    repeats: Annotated[
        bool, typer.Option("--repeats", help="Keep what stands at the same place of the same sentence again")
    ] = False
    not_accepted: Annotated[
        bool, typer.Option("--not-accepted", help="Entities below their cut-off alone, see `spacy calib threshold --apply`")
    ] = False
    plot: Annotated[Path | None, typer.Option("--plot", help="PNG or SVG: errors found against share reviewed; needs gold")] = (
        None
    )
    attr: FirstAttr = None
    columns: Columns = None
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random order")] = 0

    def check_options(self) -> None:
        """RAISES C056: the suffix of an output does not go with the format, or a picture is neither .png nor .svg."""
        given, output = self.format, self.output
        suffix = None if output is None else output.suffix
        named = given is not None or suffix in (None, ".json", ".jsonl", ".csv")
        check_option("--output", named, "a .json, .jsonl or .csv file where no --format is given", output)
        check_option("--format", output is None or given != "table", "one for a file where --output is given", repr(given))
        is_json = given != "json" or suffix in (None, ".json")
        check_option("--output", is_json, "a file that ends in .json where --format json is given", output)
        check_raw_cells(self.raw_cells, self.form == "csv")
        of_entities = self.unit in (None, "entity") or not self.not_accepted
        check_option("--not-accepted", of_entities, f"left out with --unit {self.unit}", "it")
        if self.plot is not None:
            check_option("--plot", self.plot.suffix in _PICTURES, "a file that ends in .png or .svg", self.plot)

    @property
    def form(self) -> str:
        """The format; where none is given, that of the output's suffix."""
        return self.format or ("table" if self.output is None else self.output.suffix.removeprefix("."))

    def outputs(self) -> list[Output]:
        return queue_outputs(self.output, self.form) + ([] if self.plot is None else [Output("--plot", self.plot)])

    @property
    def needs_all(self) -> bool:
        """Whether the queue is one of all units."""
        shown_only = self.output is None and self.form == "table"
        return self.top is None and not shown_only

    def n_ranked(self, n_units: int) -> int:
        """How many units the queue holds, of so many."""
        shown_only = self.output is None and self.form == "table"
        return self.top if self.top is not None else SHOWN if shown_only else n_units


@command(
    RankOptions,
    does="List predictions to check, the most likely wrong first",
    example="./calibrated test.spacy --unit sentence --format prodigy -o queue.jsonl",
)
def rank(run: RankOptions) -> dict[str, Any]:
    """
    Rank tokens, sentences, entities or documents, most likely wrong first, and
    write them as a queue for an annotation tool. With gold it tells how soon each
    order finds the errors.

    RETURNS (dict): "pipe", "unit", "by", "units": how many there are, "known": those with gold, "wrong": errors among them or None
        without gold, "expected": share of the errors that the first units should hold, for each of "shares"; "signals": the same as
        found with gold, and the average precision of each signal (None without gold); "seen": see `expect.seen.SeenShare`; "accepted", "too_short" and "repeats": units that the queue leaves out;
        "ranked": the units of the queue, see `corpus.review.formats.record_of`; a sequence that makes each record when it is read.
    RAISES CalibError: every fault of the input.
    """
    from ..corpus.made import MadeOnDemand
    from ..corpus.review.formats import record_of
    from ..corpus.review.tasks import tasks_of
    from ..corpus.review.units import units_of

    if run.plot is not None:
        from ..pages.plots import figure_class

        figure_class()
    sums: list[UnitSums] = []
    (model,) = scored_models(run, lambda: [ranked(run, sums)])
    kind, corpus = unit_of(model, run.unit), model.corpus
    units = units_of(corpus, kind)
    queue = in_order(run, kind, corpus, units, not (run.repeats or model.without_sentences))
    tasks = tasks_of(corpus, units, queue.doubt, queue.order[: run.n_ranked(len(queue.order))])
    result = {
        "pipe": model.name,
        "unit": kind,
        "by": run.by,
        **(findings_of_sums(sums[0]) if sums else findings(corpus, units, run.seed)),
        "seen": model.seen,
        **(left_out_of(sums[0]) if sums else queue.left_out),
        "ranked": MadeOnDemand(len(tasks), lambda place: record_of(tasks[place])),
    }
    deliver_queue(result, tasks, labels_of(model, kind, sums[0].tags if sums else corpus.tags_met()), run)
    if run.plot is not None:
        draw_curves(corpus, units, run.by, run.seed, run.plot)
    return result


def draw_curves(corpus: ScoredCorpus, units: Units, by: str, seed: int, path: Path) -> None:
    """by (str): Drawn besides the usual signals. RAISES C055: the picture cannot be written. C076: there is no gold."""
    from ..corpus.review.ranking import compare_signals
    from ..pages.plots import picture_bytes
    from ..pages.series_plots import found_curves
    from .shared.atomic import write_file

    rows = compare_signals(corpus, units, _CURVE, tuple(dict.fromkeys((*_DRAWN, by))), seed)
    ax = found_curves(
        _CURVE, {row.by: [np.nan if share is None else share for share in row.found] for row in rows}, unit=units.kind
    )
    write_file(path, picture_bytes(ax.figure, path.suffix, 120))


def deliver_queue(result: dict[str, Any], tasks: Sequence[Task], labels: Sequence[str], run: RankOptions) -> None:
    """Write the queue to the output, or print it; a file goes with a table on the screen, but JSON, which is all that is printed then.

    labels (Sequence[str]): What an annotator chooses from.
    """
    if run.output is not None and run.form == "json":
        write_pieces(run.output, json_pieces(result))
    elif run.output is not None:
        write_queue(run.output, run.form, tasks, labels, result["unit"], run.raw_cells)
    if run.silent:
        return
    if run.form == "json":
        print_json(result)
    elif run.output is not None or run.form == "table":
        show_ranking(result, run.output, run.top or SHOWN)
        config = labels_file(run.output, run.form)
        if config is not None:
            msg.good(f"Labeling config: {config}")
    else:
        print_exact(queue_text(run.form, tasks, run.raw_cells), json=run.form != "csv")


def show_ranking(result: dict[str, Any], output: Path | None, shown: int = SHOWN) -> None:
    """Print the first units and what is known of the order. shown (int): How many units."""
    show_seen(result["seen"])

    plural = "entities" if result["unit"] == "entity" else f"{result['unit']}s"
    order = "in random order" if result["by"] == "random" else f"most doubtful first (by {result['by']})"
    msg.divider(f"{result['units']:,} {plural}, {order}")
    # A sentence has neither a label of its own nor a text around it, nor has a document; without gold nothing is known to be right.
    whole = {"sentence": ("Label", "In"), "document": ("In",)}.get(result["unit"], ())
    left_out = {*whole, *(("Right",) if not result["known"] else ())}
    header = ("#", "P(right)", result["unit"].capitalize(), "Label", "Right", "In")
    kept = [i for i, name in enumerate(header) if name not in left_out]
    rows = [[_cells(record)[i] for i in kept] for record in result["ranked"][:shown]]
    aligns = tuple("rrllll"[i] for i in kept)
    msg.table(rows, header=[header[i] for i in kept], divider=True, aligns=aligns, max_col=_WIDTH)
    if output is not None and len(result["ranked"]) > shown:
        msg.text(f"... and {len(result['ranked']) - shown:,} more in {output}")
    for left_out, why in (
        (result["accepted"], "accepted (--not-accepted)"),
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
    whole = record["unit"] in ("sentence", DOCUMENT)
    return (
        f"{record['rank']}",
        "<0.001" if record["score"] < 0.001 else number(record["score"], 3),
        shorten(record["focus"], _WIDTH if whole else 24),
        ", ".join(mark["label"] for mark in record["marks"]),
        {None: "", True: "yes", False: f"no, {record['gold']}" if record["gold"] else "no"}[record["right"]],
        shorten(record["text"], 60),
    )


def _show_signals(result: dict[str, Any]) -> None:
    def share(value: float | None) -> str:
        return number(None if value is None else 100 * value, 1)

    expected = ("expected", "-", *map(share, result["expected"]))
    found = [(row["by"], number(row["average_precision"]), *map(share, row["found"])) for row in result["signals"] or ()]
    header = ("% of errors in the first", "Avg. precision", *(f"{100 * part:g} %" for part in result["shares"]))
    print_table([expected, *found], header, ("l", *"r" * (len(header) - 1)))
    judged = "" if result["known"] == result["units"] else f" of the {result['known']:,} that have gold"
    wrong = "" if result["wrong"] is None else f"; by the gold {result['wrong']:,}{judged} are"
    msg.text(f"By their scores about {result['expected_wrong']:,.0f} are wrong{wrong}.")
