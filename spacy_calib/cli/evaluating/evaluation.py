"""Model and gold -> what pipes say of it, or raw scores, judged: once for the tables, the page and the pictures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...annotations import get_annotation, plain_name
from ...errors import CalibError, calib_error
from ...pipe.loading import check_readable
from ..fitting.new_calib import own_block, place_calib, ready_to_read
from ..fitting.settings import DEFAULTS, pipe_settings
from ..shared.command import check_option
from ..shared.evidence import check_bins, report_dropped, unknown_sentence
from ..shared.run import ScoredPipe, judge, pipes_to_run
from ..shared.screen import number, warn

if TYPE_CHECKING:
    from spacy.language import Language

    from ...metrics.judged_view import JudgedView
    from ...pairs.build import JudgedPairs
    from ...pipe.component import Calibrator
    from ...pipe.evaluation import Judged
    from ...plugins.report.against import Side
    from ...types import Groups
    from .options import EvaluateRun

# Of the simulated noise floor and of intervals.
_SEED = 0
# Prefix of the pipe where there are others; it is never saved.
_ATTR = "raw_scores"
# What a row of the table and its parts say of calibrated scores.
_CALIBRATED = ("calibrated", "low", "high", "debiased", "true_low", "true_high")


def judge_raw(run: EvaluateRun, nlp: Language) -> tuple[Judged, list[dict[str, Any]]]:
    """(what raw scores show on the gold of a run, where conventions differ): a pipe that changes nothing is put behind the component, in memory.

    RAISES C317, C318: there is no such component. C030 to C035, C164: the gold, or the component, see `Calibrator.fit`.
    """
    from ...pipe.calibrator_fit import conventions_in
    from ...pipe.evaluation import judge_unfitted
    from ...pipe.fit_inputs import FitArguments, gather

    nlp, calib = place_raw(run, nlp)
    examples = run.match([calib], run.read(nlp))
    examples_done = list(ready_to_read(nlp, calib, examples, silent=run.silent, n_process=run.n_process))
    inputs = gather(calib, examples_done, FitArguments())
    report_dropped(inputs.source.annotation, examples_done, run.silent)
    if inputs.unknown.n and not run.silent:
        words = inputs.unknown.words()
        warn(unknown_sentence(words, inputs.source.name, inputs.source.annotation.unit))
    conventions = [convention.to_dict(inputs.source.labels) for convention in conventions_in(inputs)]
    return judge_unfitted(calib, inputs, examples_done), conventions


def place_raw(run: EvaluateRun, nlp: Language) -> tuple[Language, Calibrator]:
    """The pipeline with a pipe that changes nothing. RAISES C317, C318: there is no such component."""
    from ...pipe.component import Calibrator

    other_pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    own_source = None if any(pipe.fitted for pipe in other_pipes) else own_block(nlp, None, run.component)
    options: dict[str, Any] = {"method": "identity"}
    if own_source is None:
        options |= {"component": run.component or only_component(nlp), **({"attr": _ATTR} if other_pipes else {})}
    name, settings = pipe_settings(own_source, options)
    return place_calib(nlp, run.model, (name, {**settings, "context": None}), gold_preproc=run.gold_preproc)


def only_component(nlp: Language) -> str:
    """The component that a fit takes by itself; where the pipeline has not that one, the only one that can be calibrated."""
    from ...sources.find import readable_in

    default: str = DEFAULTS["source"]["component"]
    readable = readable_in(nlp)
    return readable[0] if default not in nlp.component_names and len(readable) == 1 else default


def without_calibrated(table: dict[str, Any]) -> dict[str, Any]:
    """A table of `evaluate` whose calibrated scores are raw ones, with nothing said of calibrated ones."""
    bare = {
        **table,
        "errors": [{**row, **dict.fromkeys(_CALIBRATED)} for row in table["errors"]],
        "scores": {key: {**row, "calibrated": None} for key, row in table["scores"].items()},
        "change": {key: dict.fromkeys(row) for key, row in table["change"].items()},
    }
    return bare if table.get("entities") is None else {**bare, "entities": without_calibrated(table["entities"])}


def verdict_on_raw(evaluation: Judged) -> str:
    """How far raw scores are off, in one sentence; "" where there is none to judge."""
    from ...metrics.calibration_errors import calibration_error
    from ...metrics.verdict import leaning_in_words
    from ...pairs.build import top_pairs

    annotation, unit_words, pairs = (
        evaluation.annotation,
        f"the likeliest label of each {evaluation.annotation.unit}",
        evaluation.tokens.pairs,
    )
    if evaluation.spans is not None and len(evaluation.spans) and annotation.spans_first:
        unit_words, pairs = f"predicted {annotation.span_words[1]}", evaluation.spans.pairs
    pairs = pairs.take(top_pairs(pairs))
    off = calibration_error(pairs.scores, pairs.hits, evaluation.scorer.n_bins, norm="l1")
    if off is None:
        return ""
    subject = f"The scores of '{evaluation.component}'" if evaluation.component else "The scores"
    excess = float((pairs.scores - pairs.hits).mean())
    return f"{subject} are off by {number(off, 3)} on average, {leaning_in_words(excess, off)} ({unit_words}, on this data)"


def fit_command(run: EvaluateRun, component: str) -> str:
    """The command that makes these scores true. component (str): Whose they are."""
    component_option = "" if component in ("", DEFAULTS["source"]["component"]) else f" --component {shlex.quote(component)}"
    return f"python -m spacy calib fit {shlex.quote(run.model)} dev.spacy ./calibrated{component_option}"


@dataclass
class Judgement:
    """What was judged.

    name, version (str): Of the pipeline, as a page calls it. judged (list[Judged]): What each pipe says.
    models (list[ScoredPipe]): What a page and pictures show of the pipes, where they are wanted. skipped (list[str]): Sentences about what
    is not judged. values (Sequence | None): Of each Doc, of the key of --by.
    fields (dict): Key of the user data -> the name that each Doc has under it; where slices are searched.
    conventions (dict): By pipe, where labels and gold look like two conventions, see `FitInfo`; without the pipes of which it is not known.
    sides (list[Side]): What fitted pipes say, for --against.
    """

    name: str
    judged: list[Judged]
    version: str = ""
    models: list[ScoredPipe] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    values: Sequence[str | None] | None = None
    fields: dict[str, list[str | None]] = field(default_factory=dict)
    conventions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sides: list[Side] = field(default_factory=list)

    def tables(self, run: EvaluateRun) -> dict[str, Any]:
        """By pipe, see `evaluate`. RAISES C005: more bins were asked for than there are pairs."""
        return {
            evaluation.name: {**told_of(evaluation, run), "conventions": self.conventions.get(evaluation.name)}
            for evaluation in self.judged
        }


def judgement(run: EvaluateRun, with_scores: bool) -> Judgement:
    """Judge what the run is about. with_scores (bool): Keep the scores too. RAISES CalibError: any fault of the input."""
    from ...pipe.component import fitted_pipes
    from ...pipe.evaluation import conventions_met

    nlp = run.begin(run.files())
    name, version = f"{nlp.meta['lang']}_{nlp.meta['name']}", nlp.meta["version"]
    examples = run.read(nlp) if _reads_fitted(run, nlp, with_scores) else None
    if examples is None:
        raw, conventions = judge_raw(run, nlp)
        return Judgement(name, [raw], version, conventions={raw.name: conventions})
    pipes = run.pipes(nlp, examples, several=True)
    last_pipes = [pipes_to_run(nlp, pipe, sentences=True)[-1] for pipe in pipes] if with_scores else []
    evaluations, scored_by, examples = judge(run, nlp, pipes, examples, also=last_pipes)
    result = Judgement(name, evaluations, version)
    others = [pipe for pipe in fitted_pipes(nlp) if pipe not in pipes and run.attr is None and run.component is None]
    result.skipped += [f"Not judged: pipe {pipe.name}. The data has no gold for '{pipe.source.component}'." for pipe in others]
    for pipe, evaluation, corpus in zip(pipes, evaluations, scored_by, strict=True):
        try:
            check_readable(nlp, pipe)
        except CalibError as error:
            result.skipped.append(f"Not judged: pipe {pipe.name}. {error.message}")
            continue
        result.conventions[pipe.name] = conventions_met(pipe, corpus)
        if run.against is not None:
            from ...plugins.report.against import side_of

            result.sides.append(side_of(pipe, examples, run.by))
        if with_scores:
            result.models.append(ScoredPipe(pipe, corpus, evaluation.seen))
    if run.by is not None or run.find_slices:
        from ...gold.keys import fields_of, names_under

        references = [example.reference for example in examples]
        result.values = None if run.by is None else names_under(references, run.by)
        result.fields = fields_of(references) if run.find_slices else {}
    return result


def _reads_fitted(run: EvaluateRun, nlp: Language, with_scores: bool) -> bool:
    """Whether fitted pipes are evaluated, not raw scores. RAISES C027, C056: none that can be shown on a page or in pictures."""
    from ...pipe.component import Calibrator, fitted_pipes

    fitted_calibs = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    if run.attr is not None or any(run.component in (None, pipe.source.component) for pipe in fitted_calibs):
        return True
    if with_scores:
        fitted_pipes(nlp)
        check_option("--component", False, "one that is calibrated, to be shown on a page or in pictures", run.component)
    return False


def told_of(evaluation: Judged, run: EvaluateRun) -> dict[str, Any]:
    """The table of one pipe, see `evaluate`; raw scores alone of one that is not fitted. RAISES C005: see `table_of`."""
    table = table_of(evaluation, run.bins, run.groups)
    if evaluation.fitted:
        return table
    raw_table = {"verdict": verdict_on_raw(evaluation), "fit": fit_command(run, evaluation.component)}
    return {**without_calibrated(table), "unfitted": raw_table}


def table_of(evaluation: Judged, bins: int | None, groups: int | None) -> dict[str, Any]:
    """The table of one pipe, see `evaluate`. RAISES C005: more bins were asked for than there are pairs."""
    from ...metrics.table import calibration_table
    from ...metrics.tag_rows import never_right
    from ...pipe.registered import metrics
    from ...pipe.scorer import scorer_like
    from ...types import OPEN

    annotation, scorer, known_metrics = evaluation.annotation, scorer_like(evaluation.scorer, bins, groups), metrics()

    def judge_pairs(pairs_judged: JudgedPairs, own_groups: Groups, names: Sequence[str]) -> dict[str, Any]:
        judging, n_bins = scorer.judging(own_groups, names), scorer.n_bins
        documents = pairs_judged.documents if pairs_judged.unit else None
        table = calibration_table(
            pairs_judged.pairs, pairs_judged.calibrated, judging, n_bins, _SEED, documents, pairs_judged.unit, known_metrics
        )
        never = [] if plain_name(evaluation.layer) in OPEN else never_right(pairs_judged, names)
        return {"bins": n_bins, **table, "never_right": never}

    if len(evaluation.tokens):
        check_bins(len(evaluation.tokens), bins, evaluation.threshold)
    result = {
        "component": evaluation.component,
        "layer": plain_name(evaluation.layer),
        "accuracy_is": annotation.accuracy_name,
        "seen": evaluation.seen,
        "weights_changed": evaluation.weights_changed,
        "misaligned": evaluation.misaligned,
        **({"without_map": dict(evaluation.without_map)} if evaluation.without_map else {}),
        **judge_pairs(evaluation.tokens, evaluation.groups, evaluation.labels),
    }
    if evaluation.spans is not None and evaluation.span_groups is not None:
        result["entities"] = {
            "called": list(annotation.span_words),
            "event": evaluation.event,
            "accepted": evaluation.accepted,
            "flagged": evaluation.flagged,
            **judge_pairs(evaluation.spans, evaluation.span_groups, evaluation.span_labels),
        }
    if evaluation.events:
        result["events"] = [event_table(bins or 10, _SEED) for event_table in evaluation.events]
    return result


def judged_units(model: ScoredPipe, run: EvaluateRun) -> dict[str, JudgedView]:
    """ "tokens" (or "documents"), behind "entities" where the pipe has them -> their scores, by the groups of the fit or by as many as were asked for."""
    from ...metrics.judged_view import judged_entities, judged_tokens
    from ...pipe.registered import metrics
    from ...pipe.scorer import scorer_like

    pipe, corpus, _ = model
    assert pipe.groups is not None
    scorer, labels = scorer_like(pipe.scorer, run.bins, run.groups), pipe.lookup.labels()
    n_bins, judging, known_metrics = scorer.n_bins, scorer.judging, metrics()
    tokens = judged_tokens(corpus, labels, judging(pipe.groups, labels), n_bins, _SEED, known_metrics)
    if pipe.spans.groups is None:
        return {tokens.kind: tokens}
    span_labels, words = pipe.lookup.span_labels(), get_annotation(pipe.fit_info.layer).span_words
    groups = judging(pipe.spans.groups, span_labels)
    return {
        "entities": judged_entities(corpus, span_labels, groups, n_bins, _SEED, known_metrics, words),
        tokens.kind: tokens,
    }


def table_of_unit(table: Mapping[str, Any], unit: str) -> Any:
    """The part of a pipe's table that is of one unit."""
    return table["entities"] if unit == "entities" else table


def nothing_to_show(result: Judgement) -> CalibError:
    """C030: no unit of any pipe has both gold and a score."""
    first = result.judged[0]
    return calib_error("C030", layer=plain_name(first.layer), component=first.component or "the source")
