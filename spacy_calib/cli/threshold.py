"""`spacy calib threshold`: the score cut-offs of entities that reach a precision."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..calibration.cutoffs import PER
from ..errors import calib_error
from .shared.checks import check_confidence, check_option
from .shared.command import choice, command
from .shared.loading import check_readable
from .shared.options import Format
from .shared.outputs import Output
from .shared.results import deliver, write_json
from .shared.run import Run
from .shared.screen import msg, number, print_table
from .shared.seen import seen_in, show_seen

if TYPE_CHECKING:
    from spacy.language import Language

    from ..pipe.component import Calibrator


@dataclass(frozen=True)
class ThresholdOptions(Run):
    """The precision to reach, how surely, and where the cut-offs go."""

    needs_gold = True

    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="Gold that the pipeline was not trained on: a .spacy file or a folder of them"),
    ]
    _: KW_ONLY
    precision: Annotated[float, typer.Option("--precision", "-p", help="Share of accepted entities that are to be right")]
    per: Annotated[str, choice(PER, "--per", help="One cut-off for all, or for each")] = "all"
    confidence: Annotated[float, typer.Option("--confidence", help="How sure it must be that the precision is reached")] = 0.95
    attr: Annotated[
        str | None, typer.Option("--attr", help="The calib pipe with this prefix; else the first that scores entities")
    ] = None
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file for the cut-offs")] = None
    apply: Annotated[Path | None, typer.Option("--apply", "-a", help="Folder for the pipeline with the cut-offs in it")] = None
    format: Format = "table"
    force: Annotated[bool, typer.Option("--force", "-F", help="Replace a file at --output, and a pipeline at --apply")] = False

    def check_options(self) -> None:
        """RAISES C056: no precision, or no confidence."""
        check_option("--precision", 0 < self.precision < 1, "between 0 and 1", self.precision)
        check_confidence(self.confidence)

    def folder(self) -> Output | None:
        return None if self.apply is None else Output("--apply", self.apply)


@command(
    ThresholdOptions,
    does="Find the score above which entities are right as often as asked",
    example="./calibrated test.spacy --precision 0.9",
)
def threshold(run: ThresholdOptions) -> dict[str, Any]:
    """
    Find the lowest score cut-offs at which accepted entities reach a precision
    with the stated confidence. Best on gold that was not used for `calib fit`.

    RETURNS (dict): "pipe", "event", "precision", "confidence", "per", "cutoffs": key -> cut-off or None, and "rows": for each key what it
        keeps, see `calibration.thresholds.Threshold`; "seen": see `expect.seen.SeenShare`.
    RAISES CalibError: every fault of the input.
    """
    from ..calibration.cutoffs import Cutoffs
    from .shared.atomic import write_folder

    nlp = run.begin()
    pipe = span_pipe(nlp, run.attr)
    rows, seen, by = find_rows(nlp, pipe, run)
    cutoffs = Cutoffs(run.precision, run.confidence, run.per, {row["key"]: row["cutoff"] for row in rows})
    result = {
        "pipe": pipe.name,
        "attr": pipe.attr,
        "event": pipe.event,
        **cutoffs.to_dict(),
        "by": by,
        "seen": seen,
        "rows": rows,
    }
    if run.output is not None:
        write_json(run.output, result)
    if run.apply is not None:
        pipe.spans.cutoffs = cutoffs
        write_folder(run.apply, lambda folder: nlp.to_disk(folder), run.force)
    deliver(result, lambda: show_thresholds(result, run.apply), output=None, format=run.format, silent=run.silent)
    return result


def span_pipe(nlp: Language, attr: str | None) -> Calibrator:
    """The fitted calib pipe that scores entities.

    RAISES C027: there is no fitted pipe. C068: none of this prefix. C065: it calibrates a component without entities. C021, C069: see
    `check_readable`.
    """
    from ..pipe.fitted import pipes_named

    pipes = pipes_named(nlp, attr)
    with_spans = [pipe for pipe in pipes if pipe.spans.groups is not None]
    if not with_spans:
        raise calib_error("C065", name=pipes[0].name, component=pipes[0].source.component)
    check_readable(nlp, with_spans[0])
    return with_spans[0]


def find_rows(
    nlp: Language, pipe: Calibrator, run: ThresholdOptions
) -> tuple[list[dict[str, Any]], dict[str, Any] | None, dict[str, Any]]:
    """(rows, seen, by): what the cut-off of each key keeps; how much of the data the fit has seen; "unit" and "n" of the documents, which the
    bootstrap draws whole.

    RAISES C030: the data has no gold entities. C151: the component knows none of their labels.
    """
    import numpy as np

    from ..calibration.cutoffs import keys_of
    from ..calibration.thresholds import find_thresholds
    from ..pipe.scorer import corpus_of

    done = run.annotate(nlp, [pipe], what="Scoring entities")
    labels = pipe.lookup.span_labels()
    judged = corpus_of(done, pipe.attr, pipe.lookup.labels()).span_pairs(labels)
    assert pipe.spans.groups is not None
    groups = pipe.spans.groups
    keys = keys_of(run.per, judged.pairs.tags, labels, groups)
    found = find_thresholds(judged.calibrated, judged.pairs.hits, judged.documents, keys, run.precision, run.confidence)
    wanted = {"all": ["all"], "label": list(labels), "group": list(groups.names)}[run.per]
    rows = []
    for key in dict.fromkeys([*wanted, *found]):
        one = found.get(key)
        rows.append(
            {"key": key, "cutoff": None, "entities": 0, "kept": 0, "share": None, "precision": None, "low": None, "high": None}
            if one is None
            else {
                "key": key,
                "cutoff": one.cutoff,
                "entities": one.spans,
                "kept": one.kept,
                "share": one.share,
                "precision": one.precision,
                "low": one.low,
                "high": one.high,
            }
        )
    return rows, seen_in(pipe, done), {"unit": judged.unit, "n": len(np.unique(judged.documents))}


def show_thresholds(result: dict[str, Any], apply: Path | None) -> None:
    """Print the cut-offs."""
    from ..pairs.documents import by_unit

    percent, sure = f"{100 * result['precision']:g} %", f"{100 * result['confidence']:g} %"
    msg.divider(f"Cut-offs for a precision of {percent} (event: {result['event']})")
    show_seen(result["seen"])
    rows = [
        (
            row["key"] or "(no group)",
            "not reached" if row["cutoff"] is None else number(row["cutoff"]),
            f"{row['entities']:,}",
            f"{row['kept']:,}",
            number(None if row["share"] is None else 100 * row["share"], 1),
            number(row["precision"]),
            "-" if row["low"] is None else f"{number(row['low'])} to {number(row['high'])}",
        )
        for row in result["rows"]
    ]
    header = ("For", "Cut-off", "Entities", "Kept", "% kept", "Precision", "Elsewhere")
    print_table(rows, header, ("l", *"rrrrrr"))
    if all(row["cutoff"] is None for row in result["rows"]):
        applied = "" if apply is None else f" The pipeline in {apply} accepts nothing."
        msg.warn(f"No cut-off reaches {percent} with this confidence: ask for less, or give more gold.{applied}")
        return
    msg.text(
        f"In texts of the same source ({by_unit(**result['by'])}) the entities kept are right at least {percent} of the time. Of all data sets on which this "
        f"command may be run, that claim is true for {sure}, and so is the interval under Elsewhere: where the precision of as many "
        "entities kept from others lies."
    )
    if apply is not None:
        msg.good(f"The pipeline with these cut-offs (Span._.{result['attr']}_accept): {apply}")
