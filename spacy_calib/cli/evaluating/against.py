"""`--against OTHER`: two pipelines on the same gold. Which is better, are its scores truer, and where is it worse?"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from ...errors import calib_error
from ...pipe.loading import open_model
from ...types import OPEN
from ..shared.examples import run_pipes
from ..shared.run import pipes_to_run
from ..shared.screen import Column, first_of, msg, number, show_rows, warn, whole
from .raw_scores import place_raw

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
class Side:
    """What one pipeline says of the gold.

    name (str): Of its pipe. component, layer (str): Whose scores, and of which annotation. calibrated (bool): Else raw ones. labels: Of the component.
    corpus (ScoredCorpus): Its scores. gold (Ints | None): Entities of each Doc in the gold; None where it finds none. event (str): When one is right.
    called (tuple[str, str]): What an entity is called, one and several.
    """

    name: str
    component: str
    layer: str
    calibrated: bool
    labels: Sequence[str]
    corpus: ScoredCorpus
    gold: Ints | None
    event: str
    called: tuple[str, str]


class Comparison(TypedDict, total=False):
    """How OTHER compares, of one unit. "units" and "left_out" are of tokens or documents, "slices" where a key was asked for."""

    other: str
    calibrated: dict[str, bool]
    units: int
    left_out: dict[str, int]
    rows: list[ComparisonRow]
    verdict: str
    slices: dict[str, Any]


def side_of(pipe: Calibrator, corpus: ScoredCorpus, examples: Sequence[Example]) -> Side:
    """What a pipe, fitted or not, says. corpus (ScoredCorpus): Its scores on the predicted Docs of the examples."""
    import numpy as np

    from ...annotations import plain_name

    annotation, gold = pipe.source.annotation(pipe.lookup.component()), None
    if pipe.lookup.span_labels():
        gold = np.array([len(annotation.spans_on(example.reference)) for example in examples], dtype=np.intp)
    return Side(
        name=pipe.name, component=pipe.source.component, layer=plain_name(annotation.name), calibrated=pipe.fitted, labels=pipe.lookup.labels(),
        corpus=corpus, gold=gold, event=pipe.fit_info.span_event or pipe.event, called=annotation.span_words,
    )  # fmt: skip


def check_other(model: str) -> None:
    """Before anything is run. RAISES C050: OTHER is no pipeline."""
    from spacy.util import is_package

    if not (os.path.exists(Path(model, "config.cfg")) or is_package(model)):
        open_model(model)


def read_side(run: EvaluateRun, model: str, component: str | None) -> Side:
    """A pipeline's scores on the gold of a run, raw without a fitted pipe. RAISES C050, C317, C318: no such pipeline."""
    from ...pipe.component import Calibrator
    from ...pipe.scorer import corpus_of

    nlp = open_model(model, code=run.code, gpu_id=run.gpu_id, n_process=run.n_process)
    calibs = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    pipe = next((pipe for pipe in calibs if pipe.fitted and pipe.source.component == component), None)
    if pipe is not None:
        examples = run.annotate(nlp, [pipe], run.read(nlp), what="Comparing")
        return side_of(pipe, corpus_of(examples, pipe.attr, pipe.lookup.labels()), examples)
    nlp, pipe = place_raw(replace(run, model=model, component=component, against=None), nlp)
    examples = run.match([pipe], run.read(nlp))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[CW01\]")
        names = pipes_to_run(nlp, pipe)
        examples = list(run_pipes(nlp, examples, names, silent=run.silent, what="Comparing", n_process=run.n_process))
        return side_of(pipe, corpus_of(examples, pipe.attr, pipe.lookup.labels()), examples)


def compare(side: Side, other: Side, run: EvaluateRun, values: Sequence[str | None] | None) -> dict[str, Comparison]:
    """ "tokens" or "entities" -> how OTHER compares. values (Sequence | None): Of each Doc, of the key of --by. RAISES C615 to C618."""
    check_sides(side, other, run)
    tokens = _compare_units(side, other, run, values)
    about = Comparison(other=Path(str(run.against)).name, calibrated={"model": side.calibrated, "other": other.calibrated})
    comparisons: dict[str, Comparison] = {"tokens": {**about, **tokens}}
    if side.gold is not None and other.gold is not None:
        comparisons["entities"] = {**about, **_compare_spans(side, other, run)}
    return comparisons


def _compare_units(side: Side, other: Side, run: EvaluateRun, values: Sequence[str | None] | None) -> Comparison:
    """RAISES C617: no unit has a label by both."""
    from ...metrics.comparison import compare_slices, compare_units, same_units
    from ...pairs.scored_corpus import has_scored_gold

    rows = same_units(side.corpus, other.corpus)
    n_units = len(rows[0])
    if not n_units:
        raise calib_error("C617", component=side.component or "the source", model=run.model, other=run.against)
    left_out = {key: int(has_scored_gold(scored.corpus).sum()) - n_units for key, scored in (("model", side), ("other", other))}
    figures = compare_units(side.corpus, other.corpus, rows, run.bins or 10)
    sentence = verdict(figures, f"{side.corpus.row_unit}s")
    comparison = Comparison(units=n_units, left_out=left_out, rows=figures, verdict=sentence)
    if values is not None:
        comparison["slices"] = {"by": run.by, **compare_slices(side.corpus, other.corpus, rows, values)}
    return comparison


def _compare_spans(side: Side, other: Side, run: EvaluateRun) -> Comparison:
    """RAISES C618: entities are right by two events."""
    from ...metrics.comparison import compare_spans

    called, gold = side.called, side.gold
    assert gold is not None
    if side.event != other.event:
        raise calib_error("C618", called=called[0], model=run.model, event=side.event, other=run.against, given=other.event)
    figures = compare_spans(side.corpus, other.corpus, gold, run.bins or 10)
    return Comparison(rows=figures, verdict=verdict(figures, called[1]))


def check_sides(side: Side, other: Side, run: EvaluateRun) -> None:
    """RAISES C615: the labels are of other annotations. C616: no label is known to both. Labels that one alone knows are warned about."""
    named = {"model": run.model, "other": run.against, "component": side.component or "the source"}
    if side.layer != other.layer:
        raise calib_error("C615", layer=side.layer, given=other.layer, **named)
    mine, others = (sorted(set(a.labels) - set(b.labels)) for a, b in ((side, other), (other, side)))
    shown = {"known": first_of(mine, _LABELS_SHOWN), "given": first_of(others, _LABELS_SHOWN)}
    if len(mine) == len(set(side.labels)) and side.layer not in OPEN:
        raise calib_error("C616", **named, **shown)
    if (mine or others) and not run.silent:
        apart = " and ".join(
            f"{who} alone knows {names}" for who, names in zip(("MODEL", "OTHER"), shown.values(), strict=True) if names
        )
        warn(f"The labels of '{named['component']}' differ: {apart}.")


def verdict(rows: Sequence[ComparisonRow], units: str) -> str:
    """Which is better, and whose scores are truer, in one sentence. units (str): What is judged: "tokens"."""
    by_name = {row["figure"]: row for row in rows}
    right, error = by_name.get("accuracy") or by_name.get("f"), by_name.get("smce")
    if right is None:
        return ""
    said = _which_is_better(right, units)
    if error is None or error["low"] is None:
        return said
    truth = {"other": "are truer", "model": "are less true", None: "are not surely truer, nor less true"}[error["better"]]
    return f"{said}; the scores of OTHER {truth} (SMCE {number(error['other'], 3)}, of MODEL {number(error['model'], 3)})"


def _which_is_better(row: ComparisonRow, units: str) -> str:
    """row (ComparisonRow): Of accuracy, or of F."""
    difference = 100 * row["difference"]
    of_labels = row["figure"] == "accuracy"
    by_other = (
        f"{difference:+.1f} % of the {units} are right" if of_labels else f"F of the {units} differs by {difference:+.1f} %"
    )
    if row["low"] is None or row["high"] is None:
        return f"A single document does not tell which is better: by OTHER {by_other}"
    low, high = 100 * row["low"], 100 * row["high"]
    if low == high == 0:
        return f"As many of the {units} are right by both" if of_labels else f"F of the {units} is the same"
    if row["better"] is None:
        return f"Neither is surely better: by OTHER {by_other} ({low:+.1f} to {high:+.1f})"
    better = row["better"] == "other"
    size, (low, high) = abs(difference), (low, high) if better else (-high, -low)
    much = f"{size:.1f} % {'more' if better else 'fewer'} of the {units} are right"
    if not of_labels:
        much = f"F of the {units} is {size:.1f} % {'higher' if better else 'lower'}"
    return f"OTHER is {'better' if better else 'worse'}: {much} ({low:.1f} to {high:.1f})"


def _between(row: Mapping[str, Any]) -> str:
    return "-" if row["low"] is None else f"{row['low']:+.4f} to {row['high']:+.4f}"


_FIGURES = (
    Column("Figure", "figure", lambda name: _TITLES[name], "l"),
    Column("MODEL", "model", number),
    Column("OTHER", "other", number),
    Column("Difference", "difference", lambda value: f"{value:+.4f}"),
    Column("95 % interval", "", _between),
    Column("Better", "better", lambda who: str(who).upper(), "l"),
)
_SLICES = (
    Column("", "", lambda row: ("WORSE" if row["difference"] < 0 else "BETTER") if row["surely"] else "", "l"),
    Column("Slice", "slice", align="l"),
    Column("Documents", "documents", whole),
    Column("Units", "n", whole),
    *_FIGURES[1:5],
)


def show_against(comparison: Comparison, units: str) -> None:
    """Print how OTHER compares. units (str): What is judged."""
    msg.divider(f"Against {comparison['other']}: {units}")
    raw = [who.upper() for who, calibrated in comparison["calibrated"].items() if not calibrated]
    if comparison["verdict"]:
        msg.info(comparison["verdict"])
    show_rows(comparison["rows"], _FIGURES)
    if raw:
        msg.text(f"{' and '.join(raw)}: raw scores, as no fitted pipe reads the component.")
    if "units" in comparison:
        left = comparison["left_out"]
        msg.text(
            f"Of the {comparison['units']:,} {units} that both label where gold is known; left out are {left['model']:,} of MODEL and {left['other']:,} of OTHER. "
            "Difference: OTHER less MODEL, paired; its interval by document."
        )
    if comparison.get("slices"):
        _show_slices(comparison["slices"])


def _show_slices(slices: Mapping[str, Any]) -> None:
    """Print in which parts of the data OTHER is right more or less often."""
    from ...metrics.slices import FEWEST_DOCUMENTS, FEWEST_UNITS

    if slices["rows"]:
        msg.text(f"Accuracy by {slices['by']}, where OTHER is surely worse first:")
        show_rows(slices["rows"], _SLICES)
        msg.text(f"Of those that are called worse or better, {100 * slices['rate']:g} % at most are so by chance, on average.")
    if slices["too_small"]:
        msg.text(f"Not compared: {slices['too_small']:,} with fewer than {FEWEST_UNITS} units or {FEWEST_DOCUMENTS} documents.")
