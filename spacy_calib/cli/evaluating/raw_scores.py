"""Evaluation of raw scores, if nothing is fitted: by a calib pipe with the identity map, without calibrated figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..fitting.new_calib import insert_calib, merge_block, old_block, ready_to_read
from ..fitting.settings import DEFAULTS
from ..shared.evidence import report_dropped, unknown_sentence
from ..shared.screen import number, shell_line, warn

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.component import Calibrator
    from ...pipe.evaluation import PipeScores
    from .options import EvaluateRun

# Prefix of the pipe if there are other calib pipes; it is never saved.
_ATTR = "raw_scores"
# Keys of a row of the table with figures of calibrated scores.
_CALIBRATED_KEYS = ("calibrated", "low", "high", "debiased", "true_low", "true_high")


def evaluate_raw(run: EvaluateRun, nlp: Language) -> tuple[PipeScores, list[dict[str, Any]]]:
    """Return (raw scores on the gold of a run, labels that gold and component seem to use differently).

    RAISES C317, C318: there is no such component. C030 to C035, C164: gold or component do not suit, as in `Calibrator.fit`.
    """
    from ...pipe.evaluation import evaluate_raw_scores
    from ...pipe.fitting import FitArguments, conventions_in, read_fit_inputs

    nlp, calib = insert_raw_pipe(run, nlp)
    examples = run.match([calib], run.read(nlp))
    examples_done = list(ready_to_read(nlp, calib, examples, silent=run.silent, n_process=run.n_process))
    inputs = read_fit_inputs(calib, examples_done, FitArguments())
    report_dropped(inputs.source.annotation, examples_done, run.silent)
    if inputs.unknown.n and not run.silent:
        words = inputs.unknown.message_fields()
        warn(unknown_sentence(words, inputs.source.name, inputs.source.annotation.unit))
    conventions = [convention.to_dict(inputs.source.labels) for convention in conventions_in(inputs)]
    return evaluate_raw_scores(calib, inputs, examples_done), conventions


def insert_raw_pipe(run: EvaluateRun, nlp: Language) -> tuple[Language, Calibrator]:
    """Insert a calib pipe with the identity map, in memory; return (pipeline, pipe). RAISES C317, C318: no such component."""
    from ...pipe.component import Calibrator

    other_pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    block = None if any(pipe.fitted for pipe in other_pipes) else old_block(nlp, None, run.component)
    options: dict[str, Any] = {"method": "identity"}
    if block is None:
        options |= {"component": run.component or only_component(nlp), **({"attr": _ATTR} if other_pipes else {})}
    name, settings = merge_block(nlp, block, options)
    return insert_calib(nlp, run.model, (name, {**settings, "context": None}), gold_preproc=run.gold_preproc)


def only_component(nlp: Language) -> str:
    """Return the default component of a fit; if the pipeline lacks it, the only one that can be calibrated."""
    from ...sources.find import readable_in

    default: str = DEFAULTS["source"]["component"]
    readable = readable_in(nlp)
    return readable[0] if default not in nlp.component_names and len(readable) == 1 else default


def without_calibrated(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table of `evaluate` for raw scores, with all calibrated figures set to None."""
    raw_table = {
        **table,
        "errors": [{**row, **dict.fromkeys(_CALIBRATED_KEYS)} for row in table["errors"]],
        "scores": {key: {**row, "calibrated": None} for key, row in table["scores"].items()},
        "change": {key: dict.fromkeys(row) for key, row in table["change"].items()},
    }
    return raw_table if table.get("entities") is None else {**raw_table, "entities": without_calibrated(table["entities"])}


def verdict_on_raw(evaluation: PipeScores) -> str:
    """Return a sentence with the calibration error of raw scores; "" if no unit with gold has any."""
    from ...metrics.calibration_errors import calibration_error
    from ...metrics.sentences import leaning_in_words
    from ...pairs.build import top_pairs

    annotation, pairs = evaluation.annotation, evaluation.tokens.pairs
    unit_words = f"the top label of each {annotation.unit}"
    if evaluation.spans is not None and len(evaluation.spans) and not annotation.arcs:
        unit_words, pairs = f"predicted {annotation.span_words[1]}", evaluation.spans.pairs
    pairs = pairs.take(top_pairs(pairs))
    error = calibration_error(pairs.scores, pairs.hits, evaluation.scorer.n_bins, norm="l1")
    if error is None:
        return ""
    subject = f"The scores of '{evaluation.component}'" if evaluation.component else "The scores"
    excess = float((pairs.scores - pairs.hits).mean())
    return f"{subject} are off by {number(error, 3)} on average, {leaning_in_words(excess, error)} ({unit_words}, on this data)"


def fit_command(run: EvaluateRun, component: str) -> str:
    """Return the command that calibrates the scores of a component."""
    options = {"--component": "" if component == DEFAULTS["source"]["component"] else component}
    return shell_line("fit", run.model, "dev.spacy", "./calibrated", options=options)
