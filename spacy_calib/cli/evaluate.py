"""`spacy calib evaluate`: the calibration table of a fitted pipeline on gold data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .evaluating.raw import fit_command, judge_raw, verdict_on_raw, without_calibrated
from .evaluating.showing import show_table
from .scores import is_calibrator, judged_file
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
from .shared.sources import GoldSource, MapFor, go_by

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
    gold_source: GoldSource = None
    map_for: MapFor = None
    component: Annotated[
        str | None,
        typer.Option(
            "--component",
            "-C",
            help="Judge the pipes that read this component; raw scores where none is fitted",
            show_default="all fitted pipes; where there is none, the tagger",
        ),
    ] = None
    bins: NBins = None
    groups: NGroups = None
    seed: FloorSeed = 0
    format: Format = "table"

    def check_options(self) -> None:
        """RAISES C433: both DATA and statistics, or neither. C435: an option that looks at documents, beside statistics."""
        of_documents = {
            "--gold-preproc": self.gold_preproc, "--doc-key": self.doc_key, "--n-process": self.n_process != 1, "--component": self.component,
            "--gold-source": self.gold_source, "--map-for": self.map_for,
        }  # fmt: skip
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
    (what exactly true scores would show) and 95 % intervals by document. Of a
    pipeline that is not calibrated yet, how true its raw scores are. With
    --from, of any number of shards that `calib collect --judge` read; MODEL
    may be left out then.

    RETURNS (dict): By pipe name, see `metrics.table.calibration_table`; "entities" holds the same for whole entities, "events" what event
        pipes say of whole units (see `statistics.events.event_table`), "misaligned" how many tokens align with no single gold token. Of raw scores
        calibrated figures are None, and "unfitted" holds the "verdict" and the command for a "fit".
    RAISES CalibError: every fault of the input.
    """
    found = [_collected(run)] if run.statistics else _judged(run)
    result = {one.about["name"]: told_of(one, run) for one in found}

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
    """Those of the data, as of one shard. RAISES CalibError: see `judge`, `judge_raw` and `judged_file`."""
    from ..pipe.component import Calibrator
    from ..pipe.fitted import pipes_named

    if is_calibrator(run.model):
        go_by((), run.gold_source, run.map_for)
        return [judged_file(run)]
    nlp = run.begin()
    fitted = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    reading = [pipe for pipe in fitted if run.component in (None, pipe.source.component)]
    go_by(reading, run.gold_source, run.map_for)
    if not reading and run.attr is None:
        return [judge_raw(run, nlp)]
    return judge(run, nlp, [pipe for pipe in pipes_named(nlp, run.attr) if pipe in reading])


def told_of(found: JudgedStatistics, run: EvaluateOptions) -> dict[str, Any]:
    """The table of one pipe, see `evaluate`; raw scores alone of one that is not fitted. RAISES C005: see `table_of`."""
    table = table_of(found, run.bins, run.groups, run.seed)
    if found.identity.fit:
        return table
    unfitted = {"verdict": verdict_on_raw(found), "fit": fit_command(run, found.identity.component)}
    return {**without_calibrated(table), "unfitted": unfitted}


def table_of(found: JudgedStatistics, bins: int | None, groups: int | None, seed: int) -> dict[str, Any]:
    """The table of one pipe, see `evaluate`. RAISES C005: more bins were asked for than there are pairs."""
    from ..calibration.recall_cutoffs import RecallCutoffs
    from ..pages.never_right import never_right
    from ..pipe.registered import metrics
    from ..pipe.scorer import CalibScorer, scorer_like
    from ..statistics.events import event_table
    from ..statistics.figures import table_of_counts
    from ..statistics.flags import flagged_rows
    from ..types import Groups

    about, identity = found.about, found.identity
    scorer, known = scorer_like(CalibScorer(about["bins"], about["n_groups"]), bins, groups), metrics()

    def judge_counts(counts: JudgedCounts, own: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
        judging = scorer.judging(Groups.read(own), names)
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
        "misaligned": found.misaligned,
        **judge_counts(found.tokens, about["groups"], identity.labels),
    }
    if found.spans is not None:
        accepted = None if about["precision"] is None else accepted_share(about["precision"], **found.accepted)
        flagged = None if found.flags is None else flagged_rows(found.flags, RecallCutoffs.read(about["recall"]))
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
