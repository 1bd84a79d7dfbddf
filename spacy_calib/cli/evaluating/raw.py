"""How true the scores of a component are before any calibration."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from ..fitting.fit_pipe import ready_to_read
from ..fitting.fitted_pipe import own_block
from ..fitting.new_calib import place_calib
from ..fitting.settings import DEFAULTS, pipe_settings
from ..shared.examples import read_examples
from ..shared.gold import unknown_sentence
from ..shared.screen import number, warn

if TYPE_CHECKING:
    from spacy.language import Language

    from ...statistics.judged import JudgedStatistics
    from ...statistics.tables import JudgedCounts
    from ..evaluate import EvaluateOptions

# Prefix of the pipe where there are others; it is never saved.
_ATTR = "raw_scores"
# What a row of the table and its parts say of calibrated scores.
_CALIBRATED = ("calibrated", "low", "high", "debiased", "true_low", "true_high")


def judge_raw(run: EvaluateOptions, nlp: Language) -> JudgedStatistics:
    """The statistics of raw scores on the gold of a run: a pipe that changes nothing is put behind the component, in memory.

    RAISES C317, C318: there is no such component. C030 to C035, C164: the gold, or the component, see `Calibrator.fit`.
    """
    from ...pipe.component import Calibrator
    from ...pipe.gathering import FitArguments, gather
    from ...pipe.judging import raw_statistics

    others = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    own = None if any(pipe.fitted for pipe in others) else own_block(nlp, None, run.component)
    given: dict[str, Any] = {"method": "identity", "context": False}
    if own is None:
        given |= {"component": run.component or _only_component(nlp), **({"attr": _ATTR} if others else {})}
    nlp, calib = place_calib(nlp, run.model, given, pipe_settings(own, given), gold_preproc=run.gold_preproc)
    examples = read_examples(nlp, run.data, run.gold_preproc, run.doc_key)
    done = list(ready_to_read(nlp, calib, examples, silent=run.silent, n_process=run.n_process))
    gathered = gather(calib, done, FitArguments())
    if gathered.data.n_unknown and not run.silent:
        words = gathered.data.unknown.words()
        warn(unknown_sentence(words, calib.source.component or "the source", gathered.annotation.unit))
    return raw_statistics(calib, gathered, done)


def _only_component(nlp: Language) -> str:
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


def verdict_on_raw(found: JudgedStatistics) -> str:
    """How far raw scores are off, in one sentence; "" where there is none to judge."""
    from ...doc.annotations import get_annotation, unit_of
    from ...metrics.calibration_error import calibration_error
    from ...pages.verdict import leaning_in_words

    of, counts = f"the likeliest label of each {unit_of(found.about['layer'])}", found.tokens
    if found.spans is not None and found.spans.total and get_annotation(found.identity.layer).spans_first:
        of, counts = f"predicted {found.about['called'][1]}", found.spans
    scores, hits, weights = _likeliest(counts)
    off = calibration_error(scores, hits, found.about["bins"], norm="l1", weights=weights)
    if off is None:
        return ""
    excess = float((weights * (scores - hits)).sum() / weights.sum())
    whose = f"The scores of '{found.identity.component}'" if found.identity.component else "The scores"
    return f"{whose} are off by {number(off, 3)} on average, {leaning_in_words(excess, off)} ({of}, on this data)"


def _likeliest(counts: JudgedCounts) -> tuple[Any, Any, Any]:
    """(raw scores, hits, weights) of the likeliest labels."""
    import numpy as np

    rows, hits, weights = counts.by_hit()
    raw, _, likeliest = (key[rows].astype(np.float64) for key in counts.keys)
    own = likeliest > 0
    return raw[own], hits[own], weights[own]


def fit_command(run: EvaluateOptions, component: str) -> str:
    """The command that makes these scores true. component (str): Whose they are."""
    of = "" if component in ("", DEFAULTS["source"]["component"]) else f" --component {shlex.quote(component)}"
    return f"python -m spacy calib fit {shlex.quote(run.model)} dev.spacy ./calibrated{of}"
