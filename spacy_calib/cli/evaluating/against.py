"""`--against OTHER`: compare two pipelines on the same gold, by accuracy, calibration and slices."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from ...errors import calib_error
from ...pipe.pipeline import open_model
from ...types import OPEN
from ..shared.examples import run_pipes
from ..shared.run import pipes_to_run
from ..shared.screen import TableColumn, first_of, msg, number, show_rows, warn, whole
from .raw_scores import insert_raw_pipe

if TYPE_CHECKING:
    from spacy.training import Example

    from ...metrics.comparison import ComparisonRow
    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator
    from ...types import Ints
    from .options import EvaluateRun

_LABELS_SHOWN = 6
_TITLES = {
    "accuracy": "Accuracy", "log_loss": "Log loss (of the label)", "smce": "SMCE", "precision": "Precision", "recall": "Recall", "f": "F",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class PipelineScores:
    """The scores of one pipeline on the gold.

    name (str): Of its calib pipe. component, layer (str): Component, and its annotation. is_calibrated (bool): Whether scores
    are calibrated, not raw. labels: Of the component. corpus (ScoredCorpus): The scores. n_gold_spans (Ints | None): Gold
    entities per Doc; None if the component predicts none. event (str): When an entity counts as right. span_words (tuple[str,
    str]): Singular and plural noun, "entity" and "entities".
    """

    name: str
    component: str
    layer: str
    is_calibrated: bool
    labels: Sequence[str]
    corpus: ScoredCorpus
    n_gold_spans: Ints | None
    event: str
    span_words: tuple[str, str]


class PipelineComparison(TypedDict, total=False):
    """The comparison of MODEL with OTHER for one unit; "units" and "left_out" for tokens or documents, "slices" with --by."""

    other: str
    calibrated: dict[str, bool]
    units: int
    left_out: dict[str, int]
    rows: list[ComparisonRow]
    verdict: str
    slices: dict[str, Any]


def scores_of_pipe(pipe: Calibrator, corpus: ScoredCorpus, examples: Sequence[Example]) -> PipelineScores:
    """Build the scores of a pipe, fitted or not. corpus (ScoredCorpus): Its scores on the predicted Docs of the examples."""
    import numpy as np

    from ...annotations import plain_name

    annotation, n_gold_spans = pipe.source.annotation(pipe.lookup.component()), None
    if pipe.lookup.span_labels():
        n_gold_spans = np.array([len(annotation.spans_on(example.reference)) for example in examples], dtype=np.intp)
    return PipelineScores(
        name=pipe.name, component=pipe.source.component, layer=plain_name(annotation.name), is_calibrated=pipe.fitted,
        labels=pipe.lookup.labels(), corpus=corpus, n_gold_spans=n_gold_spans, event=pipe.fit_info.span_event or pipe.event,
        span_words=annotation.span_words,
    )  # fmt: skip


def check_other(model: str) -> None:
    """Check OTHER before anything is run. RAISES C050: it is no pipeline."""
    from spacy.util import is_package

    if not (os.path.exists(Path(model, "config.cfg")) or is_package(model)):
        open_model(model)


def score_pipeline(run: EvaluateRun, model: str, component: str | None) -> PipelineScores:
    """Run a pipeline over the gold of a run; return the scores of a component, raw without a fitted pipe.

    RAISES C050, C317, C318: no such pipeline, or no such component in it.
    """
    from ...pipe.component import Calibrator
    from ...pipe.scorer import corpus_of

    nlp = open_model(model, code=run.code, gpu_id=run.gpu_id, n_process=run.n_process)
    calibs = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    pipe = next((pipe for pipe in calibs if pipe.fitted and pipe.source.component == component), None)
    if pipe is not None:
        examples = run.annotate(nlp, [pipe], run.read(nlp), title="Comparing")
        return scores_of_pipe(pipe, corpus_of(examples, pipe.attr, pipe.lookup.labels()), examples)
    nlp, pipe = insert_raw_pipe(replace(run, model=model, component=component, against=None), nlp)
    examples = run.match([pipe], run.read(nlp))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[CW01\]")
        names = pipes_to_run(nlp, pipe)
        examples = list(run_pipes(nlp, examples, names, silent=run.silent, title="Comparing", n_process=run.n_process))
        return scores_of_pipe(pipe, corpus_of(examples, pipe.attr, pipe.lookup.labels()), examples)


def compare(
    a: PipelineScores, b: PipelineScores, run: EvaluateRun, values: Sequence[str | None] | None
) -> dict[str, PipelineComparison]:
    """Compare MODEL (a) with OTHER (b); return "tokens", and "entities" if both predict them, -> comparison.

    values (Sequence | None): Of each Doc, under the key of --by. RAISES C615 to C618: there is nothing to compare.
    """
    check_comparable(a, b, run)
    tokens = _compare_units(a, b, run, values)
    names = PipelineComparison(
        other=Path(str(run.against)).name, calibrated={"model": a.is_calibrated, "other": b.is_calibrated}
    )
    comparisons: dict[str, PipelineComparison] = {"tokens": {**names, **tokens}}
    if a.n_gold_spans is not None and b.n_gold_spans is not None:
        comparisons["entities"] = {**names, **_compare_spans(a, b, run)}
    return comparisons


def _compare_units(
    a: PipelineScores, b: PipelineScores, run: EvaluateRun, values: Sequence[str | None] | None
) -> PipelineComparison:
    """Compare the labels of tokens or documents. RAISES C617: no unit is labelled by both."""
    from ...metrics.comparison import compare_slices, compare_units, same_units
    from ...pairs.scored_corpus import has_scored_gold

    rows = same_units(a.corpus, b.corpus)
    n_units = len(rows[0])
    if not n_units:
        raise calib_error("C617", component=a.component or "the source", model=run.model, other=run.against)
    left_out = {key: int(has_scored_gold(scores.corpus).sum()) - n_units for key, scores in (("model", a), ("other", b))}
    figures = compare_units(a.corpus, b.corpus, rows, run.bins or 10)
    sentence = verdict(figures, f"{a.corpus.row_unit}s")
    comparison = PipelineComparison(units=n_units, left_out=left_out, rows=figures, verdict=sentence)
    if values is not None:
        comparison["slices"] = {"by": run.by, **compare_slices(a.corpus, b.corpus, rows, values)}
    return comparison


def _compare_spans(a: PipelineScores, b: PipelineScores, run: EvaluateRun) -> PipelineComparison:
    """Compare whole entities. RAISES C618: the pipelines were fitted with different events (what counts as right)."""
    from ...metrics.comparison import compare_spans

    singular, plural = a.span_words
    assert a.n_gold_spans is not None
    if a.event != b.event:
        raise calib_error("C618", called=singular, model=run.model, event=a.event, other=run.against, given=b.event)
    figures = compare_spans(a.corpus, b.corpus, a.n_gold_spans, run.bins or 10)
    return PipelineComparison(rows=figures, verdict=verdict(figures, plural))


def check_comparable(a: PipelineScores, b: PipelineScores, run: EvaluateRun) -> None:
    """Check that two pipelines predict the same labels; warn of labels that only one has.

    RAISES C615: they predict different annotations. C616: they have no label in common.
    """
    names = {"model": run.model, "other": run.against, "component": a.component or "the source"}
    if a.layer != b.layer:
        raise calib_error("C615", layer=a.layer, given=b.layer, **names)
    only_a, only_b = sorted(set(a.labels) - set(b.labels)), sorted(set(b.labels) - set(a.labels))
    label_lists = {"known": first_of(only_a, _LABELS_SHOWN), "given": first_of(only_b, _LABELS_SHOWN)}
    if len(only_a) == len(set(a.labels)) and a.layer not in OPEN:
        raise calib_error("C616", **names, **label_lists)
    if (only_a or only_b) and not run.silent:
        differences = " and ".join(
            f"only {model} has {labels}"
            for model, labels in zip(("MODEL", "OTHER"), label_lists.values(), strict=True)
            if labels
        )
        warn(f"The labels of '{names['component']}' differ: {differences}.")


def verdict(rows: Sequence[ComparisonRow], units: str) -> str:
    """Return one sentence: which pipeline is better, and whose scores are better calibrated. units (str): "tokens"."""
    by_name = {row["figure"]: row for row in rows}
    right, error = by_name.get("accuracy") or by_name.get("f"), by_name.get("smce")
    if right is None:
        return ""
    sentence = _which_is_better(right, units)
    if error is None or error["low"] is None:
        return sentence
    calibration = {"other": "better", "model": "worse", None: "not clearly better or worse"}[error["better"]]
    return f"{sentence}; the scores of OTHER are {calibration} calibrated (SMCE {number(error['other'], 3)}, of MODEL {number(error['model'], 3)})"


def _which_is_better(row: ComparisonRow, units: str) -> str:
    """Return the first part of the verdict: which pipeline is better. row (ComparisonRow): Of accuracy, or of F."""
    difference = 100 * row["difference"]
    of_labels = row["figure"] == "accuracy"
    by_other = (
        f"{difference:+.1f} % of the {units} are right" if of_labels else f"F of the {units} differs by {difference:+.1f} %"
    )
    if row["low"] is None or row["high"] is None:
        return f"A single document cannot show which is better: by OTHER {by_other}"
    low, high = 100 * row["low"], 100 * row["high"]
    if low == high == 0:
        return f"Equally many {units} are right by both" if of_labels else f"F of the {units} is the same"
    if row["better"] is None:
        return f"Neither is clearly better: by OTHER {by_other} ({low:+.1f} to {high:+.1f})"
    is_better = row["better"] == "other"
    size, (low, high) = abs(difference), (low, high) if is_better else (-high, -low)
    gain = f"{size:.1f} % {'more' if is_better else 'fewer'} of the {units} are right"
    if not of_labels:
        gain = f"F of the {units} is {size:.1f} % {'higher' if is_better else 'lower'}"
    return f"OTHER is {'better' if is_better else 'worse'}: {gain} ({low:.1f} to {high:.1f})"


def _interval(row: Mapping[str, Any]) -> str:
    return "-" if row["low"] is None else f"{row['low']:+.4f} to {row['high']:+.4f}"


_FIGURES = (
    TableColumn("Figure", "figure", lambda name: _TITLES[name], "l"),
    TableColumn("MODEL", "model", number),
    TableColumn("OTHER", "other", number),
    TableColumn("Difference", "difference", lambda value: f"{value:+.4f}"),
    TableColumn("95 % interval", "", _interval),
    TableColumn("Better", "better", lambda who: str(who).upper(), "l"),
)
_SLICES = (
    TableColumn("", "", lambda row: ("WORSE" if row["difference"] < 0 else "BETTER") if row["surely"] else "", "l"),
    TableColumn("Slice", "slice", align="l"),
    TableColumn("Documents", "documents", whole),
    TableColumn("Units", "n", whole),
    *_FIGURES[1:5],
)


def show_against(comparison: PipelineComparison, units: str) -> None:
    """Print the comparison with OTHER. units (str): "tokens"."""
    msg.divider(f"Against {comparison['other']}: {units}")
    raw_models = [model.upper() for model, is_calibrated in comparison["calibrated"].items() if not is_calibrated]
    if comparison["verdict"]:
        msg.info(comparison["verdict"])
    show_rows(comparison["rows"], _FIGURES)
    if raw_models:
        msg.text(f"{' and '.join(raw_models)}: raw scores, as no fitted pipe reads the component.")
    if "units" in comparison:
        left_out = comparison["left_out"]
        msg.text(
            f"On the {comparison['units']:,} {units} with gold that both label; left out are {left_out['model']:,} of MODEL and {left_out['other']:,} of OTHER. "
            "Difference: OTHER minus MODEL, paired, with its interval by document."
        )
    if comparison.get("slices"):
        _show_slices(comparison["slices"])


def _show_slices(slices: Mapping[str, Any]) -> None:
    """Print the slices of the data, those where OTHER is right less often first."""
    from ...metrics.slices import FEWEST_DOCUMENTS, FEWEST_UNITS

    if slices["rows"]:
        msg.text(f"Accuracy by {slices['by']}, slices where OTHER is clearly worse first:")
        show_rows(slices["rows"], _SLICES)
        msg.text(f"Of the slices marked WORSE or BETTER at most {100 * slices['rate']:g} % are so by chance, on average.")
    if slices["too_small"]:
        msg.text(f"Not compared: {slices['too_small']:,} with fewer than {FEWEST_UNITS} units or {FEWEST_DOCUMENTS} documents.")
