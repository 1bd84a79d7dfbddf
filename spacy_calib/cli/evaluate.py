"""`spacy calib evaluate`: the calibration table of a fitted pipeline on gold data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .fitting.fit_event import show_event_table
from .scores.judged_file import judged_file
from .scores.scored_file import is_calibrator
from .shared.command import command
from .shared.from_statistics import From, TakesStatistics, check_source, read_judged, statistics_files
from .shared.gold import check_bins
from .shared.judged import judge
from .shared.loading import open_model, pipe_of
from .shared.options import (
    FloorSeed,
    Format,
    NBins,
    NGroups,
    OnlyAttr,
)
from .shared.outputs import check_files
from .shared.results import deliver
from .shared.run import Run
from .shared.screen import msg, number, print_table
from .shared.seen import show_other_weights, show_seen

if TYPE_CHECKING:
    from ..statistics.judged import JudgedStatistics
    from ..statistics.tables import JudgedCounts


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(Run):
    """What `evaluate` judges, and by what."""

    needs_gold = True

    statistics: From = field(default_factory=list)
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file for the figures")] = None
    attr: OnlyAttr = None
    bins: NBins = None
    groups: NGroups = None
    seed: FloorSeed = 0
    format: Format = "table"

    def check_options(self) -> None:
        """RAISES C433: both DATA and statistics, or neither. C435: an option that looks at documents, beside statistics."""
        of_documents = {"--gold-preproc": self.gold_preproc, "--doc-key": self.doc_key, "--n-process": self.n_process != 1}
        check_source(self.statistics, self.data, of_documents)


class EvaluateCommand(TakesStatistics):
    """With statistics in the place of DATA, which know whose they are."""

    optional = ("model",)


@command(
    EvaluateOptions,
    does="Show on gold how true the probabilities are: a table",
    example="./calibrated test.spacy --output metrics.json",
    kind=EvaluateCommand,
)
def evaluate(run: EvaluateOptions) -> dict[str, Any]:
    """
    Show how true the calibrated probabilities of a pipeline are: calibration
    error raw and calibrated, over all tags and by group, with the noise floor
    (what exactly true scores would show) and 95 % intervals by document. With
    --from, of any number of shards that `calib collect --judge` read; MODEL
    may be left out then.

    RETURNS (dict): By pipe name, see `metrics.table.calibration_table`; "entities" holds the same for whole entities, "events" what event
        pipes say of whole units (see `statistics.events.event_table`).
    RAISES CalibError: every fault of the input.
    """
    found = [_collected(run)] if run.statistics else _judged(run)
    result = {one.about["name"]: table_of(one, run.bins, run.groups, run.seed) for one in found}

    def show_all() -> None:
        for name, table in result.items():
            show_table(name, table)

    deliver(result, show_all, output=run.output, format=run.format, silent=run.silent)
    return result


def _collected(run: EvaluateOptions) -> JudgedStatistics:
    """Those of shards. RAISES C425 to C430, C434, C436: the files, and whether they go together. C054 to C056: the output."""
    from ..pipe.event import event_pipes
    from ..pipe.judging import check_pipe

    files = statistics_files(run.statistics)
    check_files(run.outputs(), run.force, inputs=[*files, run.code], model=run.model or "")
    found = read_judged(files)
    if run.model:
        nlp = open_model(run.model, code=run.code, gpu_id=run.gpu_id)
        pipe = pipe_of(nlp, found.about["attr"])
        check_pipe(pipe, event_pipes(nlp, pipe.attr), found)
    return found


def _judged(run: EvaluateOptions) -> list[JudgedStatistics]:
    """Those of the data, as of one shard. RAISES CalibError: see `judge` and `judged_file`."""
    from ..pipe.fitted import pipes_named

    if is_calibrator(run.model):
        return [judged_file(run)]
    nlp = run.begin()
    return judge(run, nlp, pipes_named(nlp, run.attr))


def table_of(found: JudgedStatistics, bins: int | None, groups: int | None, seed: int) -> dict[str, Any]:
    """The table of one pipe, see `evaluate`. RAISES C005: more bins were asked for than there are pairs."""
    from ..calibration.recall_cutoffs import RecallCutoffs
    from ..pipe.registered import metrics
    from ..pipe.scorer import CalibScorer, scorer_like
    from ..report.never_right import never_right
    from ..statistics.events import event_table
    from ..statistics.figures import table_of_counts
    from ..statistics.flags import flagged_rows
    from ..types import Groups

    about, identity = found.about, found.identity
    scorer, known = scorer_like(CalibScorer(about["bins"], about["n_groups"]), bins, groups), metrics()

    def judge_counts(counts: JudgedCounts, own: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
        judging = scorer.judging(Groups.from_state(own), names)
        table = table_of_counts(counts, judging, scorer.n_bins, seed, found.unit, known)
        # Edit trees do not name the lemma that they give.
        never = [] if about["layer"] == "lemma" else never_right(counts, names)
        return {"bins": scorer.n_bins, **table, "never_right": never}

    if found.tokens.total:
        check_bins(found.tokens.total, bins, identity.threshold)
    seen = None if found.seen is None else found.seen.share()
    result = {
        "component": identity.component,
        "layer": about["layer"],
        "accuracy_is": about["accuracy_is"],
        "seen": None if seen is None else seen.to_dict(),
        "weights_changed": about["weights_changed"],
        **judge_counts(found.tokens, about["groups"], identity.labels),
    }
    if found.spans is not None:
        accepted = None if about["precision"] is None else accepted_share(about["precision"], **found.accepted)
        flagged = None if found.flags is None else flagged_rows(found.flags, RecallCutoffs.from_dict(about["recall"]))
        result["entities"] = {
            "called": about["called"],
            "event": about["event"],
            "accepted": accepted,
            "flagged": flagged,
            **judge_counts(found.spans, about["span_groups"], identity.span_labels),
        }
    if found.events:
        events = zip(found.events, about["events"], strict=True)
        result["events"] = [event_table(counts, event, bins or 10, seed) for counts, event in events]
    return result


def accepted_share(wanted: float, judged: int, kept: int, right: int) -> dict[str, Any]:
    """What the cut-offs of the pipe keep: "wanted" precision, "kept" entities, their "share" of all, and the "precision" they have.

    judged (int): Entities with gold. right (int): Of those kept.
    """
    return {
        "wanted": wanted,
        "kept": kept,
        "share": kept / judged if judged else None,
        "precision": right / kept if kept else None,
    }


def show_table(name: str, table: dict[str, Any]) -> None:
    """Print one pipe's tables."""
    from ..doc.annotations import unit_of
    from ..pairs.documents import DOCUMENT, by_unit

    unit = unit_of(table["layer"])
    msg.divider(f"{name} ({table['component'] or 'Doc'})")
    if not table["pairs"]:
        msg.warn(f"Nothing to judge: no {unit} has both gold and a score.")
        return
    show_other_weights(table["weights_changed"])
    show_seen(table["seen"])
    share = number(None if table["accuracy"] is None else 100 * table["accuracy"], 2)
    msg.text(f"{table['tokens']:,} {unit}s, {table['pairs']:,} pairs, {table['accuracy_is']} {share} %, {table['bins']} bins")
    _show_errors(table, "ECE (top label)")
    entities = table.get("entities")
    if entities is not None:
        one, several = entities["called"]
        msg.divider(f"{name}: whole {several} (event: {entities['event']})")
        if entities["pairs"]:
            share = number(None if entities["accuracy"] is None else 100 * entities["accuracy"], 2)
            msg.text(f"{entities['pairs']:,} predicted {several}, {share} % right, {entities['bins']} bins")
            _show_errors(entities, "ECE")
            _show_accepted(entities["accepted"], several)
            _show_flagged(entities["flagged"])
        else:
            msg.warn(f"Nothing to judge: no {one} was predicted where there is gold.")
    for event in table.get("events", ()):
        show_event_table(event)
    what = "category" if unit == DOCUMENT else "tag"
    msg.text(
        f"A pair is one {unit} and one {what} with a score above the threshold, and whether that is the gold {what}; of entities, each one found."
    )
    msg.text("An error near the floor cannot be improved: exactly true scores would show it too. Lower is better.")
    msg.text(
        "The interval holds the calibrated error that endless data would show, without the noise in the bins; "
        f"{by_unit(**table['by'])}. It is around the debiased error, from which that noise is taken: the measured one may lie above it."
    )


def _show_accepted(accepted: dict[str, Any] | None, several: str) -> None:
    if accepted is not None:
        share = number(None if accepted["share"] is None else 100 * accepted["share"], 1)
        msg.text(
            f"{accepted['kept']:,} {several} ({share} %) reach their cut-off; precision {number(accepted['precision'])}, "
            f"wanted {number(accepted['wanted'])}"
        )


def _show_flagged(rows: list[dict[str, Any]] | None) -> None:
    for row in rows or ():
        share = number(None if row["share"] is None else 100 * row["share"], 1)
        msg.text(
            f"{row['flagged']:,} tokens ({share} %) are flagged{'' if row['key'] == 'all' else ' for ' + row['key']}; recall "
            f"{number(row['recall'])} of {row['tokens']:,} tokens of gold entities, wanted {number(row['wanted'])}"
        )


def _show_errors(table: dict[str, Any], ece: str) -> None:
    from ..metrics.metric import title_of
    from ..pipe.registered import metrics
    from ..report.never_right import warning_of
    from ..report.verdict import worse_of

    rows = [
        (
            {"all": "all (SMCE)", "mean": "mean (GMCE)"}.get(row["group"], row["group"]),
            f"{row['tags']:,}",
            f"{row['pairs']:,}",
            number(row["raw"]),
            number(row["calibrated"]),
            number(row["debiased"]),
            "-" if row["true_low"] is None else f"{number(row['true_low'])} to {number(row['true_high'])}",
            number(row["floor"]),
            number(row["floor95"]),
        )
        for row in table["errors"]
    ]
    header = ("Group", "Tags", "Pairs", "Raw", "Calibrated", "Debiased", "95 % interval", "Floor", "Floor 95 %")
    print_table(rows, header, ("l", *"rrrrrrrr"))
    names = {"ece": ece, **{short: title_of(metric, short) for short, metric in metrics().items()}}
    scores = [
        (names[key], number(row["raw"]), number(row["calibrated"]), *_change(table["change"].get(key)))
        for key, row in table["scores"].items()
    ]
    print_table(scores, ("Score", "Raw", "Calibrated", "Change", "95 % interval"), ("l", *"rrrr"))
    warnings = (warning_of(table["never_right"]), worse_of(table["change"]))
    for warning in filter(None, warnings):
        msg.warn(warning)


def _change(change: dict[str, Any] | None) -> tuple[str, str]:
    if change is None or change["value"] is None:
        return "-", "-"
    return f"{change['value']:+.4f}", "-" if change["low"] is None else f"{change['low']:+.4f} to {change['high']:+.4f}"
