"""Raw scores where nothing is fitted: a pipe that changes nothing takes the place of a calib pipe, and the table shows no calibrated score."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from ..fitting.new_calib import merge_block, own_block, place_calib, ready_to_read
from ..fitting.settings import DEFAULTS
from ..shared.evidence import report_dropped, unknown_sentence
from ..shared.screen import number, warn

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.component import Calibrator
    from ...pipe.evaluation import PipeScores
    from .options import EvaluateRun

# Prefix of the pipe where there are others; it is never saved.
_ATTR = "raw_scores"
# What a row of the table and its parts say of calibrated scores.
_CALIBRATED = ("calibrated", "low", "high", "debiased", "true_low", "true_high")


def judge_raw(run: EvaluateRun, nlp: Language) -> tuple[PipeScores, list[dict[str, Any]]]:
    """(what raw scores show on the gold of a run, where conventions differ): a pipe that changes nothing is put behind the component, in memory.

    RAISES C317, C318: there is no such component. C030 to C035, C164: the gold, or the component, see `Calibrator.fit`.
    """
    from ...pipe.calibrator_fit import conventions_in
    from ...pipe.evaluation import evaluate_raw_scores
    from ...pipe.fit_inputs import FitArguments, read_fit_inputs

    nlp, calib = place_raw(run, nlp)
    examples = run.match([calib], run.read(nlp))
    examples_done = list(ready_to_read(nlp, calib, examples, silent=run.silent, n_process=run.n_process))
    inputs = read_fit_inputs(calib, examples_done, FitArguments())
    report_dropped(inputs.source.annotation, examples_done, run.silent)
    if inputs.unknown.n and not run.silent:
        words = inputs.unknown.message_fields()
        warn(unknown_sentence(words, inputs.source.name, inputs.source.annotation.unit))
    conventions = [convention.to_dict(inputs.source.labels) for convention in conventions_in(inputs)]
    return evaluate_raw_scores(calib, inputs, examples_done), conventions


def place_raw(run: EvaluateRun, nlp: Language) -> tuple[Language, Calibrator]:
    """The pipeline with a pipe that changes nothing. RAISES C317, C318: there is no such component."""
    from ...pipe.component import Calibrator

    other_pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    own_source = None if any(pipe.fitted for pipe in other_pipes) else own_block(nlp, None, run.component)
    options: dict[str, Any] = {"method": "identity"}
    if own_source is None:
        options |= {"component": run.component or only_component(nlp), **({"attr": _ATTR} if other_pipes else {})}
    name, settings = merge_block(nlp, own_source, options)
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


def verdict_on_raw(evaluation: PipeScores) -> str:
    """How far raw scores are off, in one sentence; "" where there is none to judge."""
    from ...metrics.calibration_errors import calibration_error
    from ...metrics.sentences import leaning_in_words
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
