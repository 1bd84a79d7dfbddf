"""`--against OTHER`: two pipelines on the same gold. Which is better, are its scores truer, and where is it worse?"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...cli.evaluating.evaluation import Judgement, place_raw
from ...cli.shared.examples import run_pipes
from ...cli.shared.run import pipes_to_run
from ...cli.shared.screen import Column, first_of, msg, number, show_rows, warn, whole
from ...pipe.loading import open_model
from ...types import OPEN
from .messages import calib_error

if TYPE_CHECKING:
    from spacy.training import Example

    from ...cli.evaluating.options import EvaluateRun
    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator
    from ...types import Ints

_LABELS_SHOWN = 6
_TITLES = {
    "accuracy": "Accuracy", "log_loss": "Log loss (of the label)", "smce": "SMCE", "precision": "Precision", "recall": "Recall", "f": "F",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Side:
    """What one pipeline says of the gold.

    name (str): Of its pipe. component, layer (str): Whose scores, and of which annotation. calibrated (bool): Else raw ones. labels: Of the component.
    corpus (ScoredCorpus): Its scores. gold (Ints | None): Entities of each Doc in the gold; None where it finds none. event (str): When one is right.
    called (tuple[str, str]): What an entity is called, one and several. values (Sequence | None): Of each Doc, of the key of --by.
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
    values: Sequence[str | None] | None


def side_of(pipe: Calibrator, examples: Sequence[Example], key: str | None) -> Side:
    """examples (Sequence[Example]): Their predicted Docs have passed the pipe, fitted or not."""
    import numpy as np

    from ...annotations import plain_name
    from ...gold.keys import names_under
    from ...pipe.scorer import corpus_of

    annotation, gold = pipe.source.annotation(pipe.lookup.component()), None
    if pipe.lookup.span_labels():
        gold = np.array([len(annotation.spans_on(example.reference)) for example in examples], dtype=np.intp)
    return Side(
        name=pipe.name, component=pipe.source.component, layer=plain_name(annotation.name), calibrated=pipe.fitted, labels=pipe.lookup.labels(),
        corpus=corpus_of(examples, pipe.attr, pipe.lookup.labels()), gold=gold, event=pipe.fit_info.span_event or pipe.event,
        called=annotation.span_words, values=None if key is None else names_under((one.reference for one in examples), key),
    )  # fmt: skip


def check_against(run: EvaluateRun) -> None:
    """Before anything is run. RAISES C050: OTHER is no pipeline."""
    from spacy.util import is_package

    if run.against is None:
        return
    if not (os.path.exists(Path(run.against, "config.cfg")) or is_package(run.against)):
        open_model(run.against)


def read_side(run: EvaluateRun, model: str, component: str | None) -> Side:
    """A pipeline's scores on the gold of a run, raw without a fitted pipe. RAISES C050, C317, C318: no such pipeline."""
    from ...pipe.component import Calibrator

    nlp = open_model(model, code=run.code, gpu_id=run.gpu_id, n_process=run.n_process)
    fitted = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and pipe.fitted]
    pipes = [pipe for pipe in fitted if pipe.source.component == component]
    if pipes:
        return side_of(pipes[0], run.annotate(nlp, pipes[:1], run.read(nlp), what="Comparing"), run.by)
    nlp, pipe = place_raw(replace(run, model=model, component=component, against=None), nlp)
    examples = run.match([pipe], run.read(nlp))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\[CW01\]")
        ready = run_pipes(nlp, examples, pipes_to_run(nlp, pipe), silent=run.silent, what="Comparing", n_process=run.n_process)
        return side_of(pipe, list(ready), run.by)


def compared(found: Judgement, run: EvaluateRun) -> dict[tuple[str, str], dict[str, Any]]:
    """(pipe, "tokens" or "entities") -> how OTHER compares with it. RAISES C615 to C618: nothing to compare."""
    from .comparison import compare_slices, compare_spans, compare_units, judged, same_units

    sides = found.sides or [read_side(run, run.model, found.judged[0].component)]
    told: dict[tuple[str, str], dict[str, Any]] = {}
    for side in sides:
        other = read_side(run, str(run.against), side.component)
        check_sides(side, other, run)
        rows, n_bins = same_units(side.corpus, other.corpus), run.bins or 10
        if not len(rows[0]):
            raise calib_error("C617", component=side.component or "the source", model=run.model, other=run.against)
        who = {"other": Path(str(run.against)).name, "calibrated": {"model": side.calibrated, "other": other.calibrated}}
        figures = compare_units(side.corpus, other.corpus, rows, n_bins)
        units = f"{side.corpus.row_unit}s"
        left_out = {key: int(judged(one.corpus).sum()) - len(rows[0]) for key, one in (("model", side), ("other", other))}
        held = {**who, "units": len(rows[0]), "left_out": left_out, "rows": figures, "verdict": verdict(figures, units)}
        if side.values is not None:
            held["slices"] = {"by": run.by, **compare_slices(side.corpus, other.corpus, rows, side.values)}
        told[side.name, "tokens"] = held
        if side.gold is not None and other.gold is not None:
            if side.event != other.event:
                raise calib_error(
                    "C618", called=side.called[0], model=run.model, event=side.event, other=run.against, given=other.event
                )
            figures = compare_spans(side.corpus, other.corpus, side.gold, n_bins)
            told[side.name, "entities"] = {**who, "rows": figures, "verdict": verdict(figures, side.called[1])}
    return told


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


def verdict(rows: Sequence[Mapping[str, Any]], units: str) -> str:
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


def _which_is_better(row: Mapping[str, Any], units: str) -> str:
    """row (Mapping): Of accuracy, or of F."""
    difference, low, high = (None if row[key] is None else 100 * row[key] for key in ("difference", "low", "high"))
    of_labels = row["figure"] == "accuracy"
    by_other = (
        f"{difference:+.1f} % of the {units} are right" if of_labels else f"F of the {units} differs by {difference:+.1f} %"
    )
    if low is None or high is None:
        return f"A single document does not tell which is better: by OTHER {by_other}"
    if low == high == 0:
        return f"As many of the {units} are right by both" if of_labels else f"F of the {units} is the same"
    if row["better"] is None:
        return f"Neither is surely better: by OTHER {by_other} ({low:+.1f} to {high:+.1f})"
    better = row["better"] == "other"
    size, (low, high) = abs(float(difference or 0)), (low, high) if better else (-high, -low)
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


def show_against(told: Mapping[str, Any], units: str) -> None:
    """Print how OTHER compares. units (str): What is judged."""
    msg.divider(f"Against {told['other']}: {units}")
    raw = [who.upper() for who, calibrated in told["calibrated"].items() if not calibrated]
    if told["verdict"]:
        msg.info(told["verdict"])
    show_rows(told["rows"], _FIGURES)
    if raw:
        msg.text(f"{' and '.join(raw)}: raw scores, as no fitted pipe reads the component.")
    if "units" in told:
        left = told["left_out"]
        msg.text(
            f"Of the {told['units']:,} {units} that both label where gold is known; left out are {left['model']:,} of MODEL and {left['other']:,} of OTHER. "
            "Difference: OTHER less MODEL, paired; its interval by document."
        )
    if told.get("slices"):
        show_slices(told["slices"])


def show_slices(told: Mapping[str, Any]) -> None:
    """Print in which parts of the data OTHER is right more or less often."""
    from .slices import FEWEST_DOCUMENTS, FEWEST_UNITS

    if told["rows"]:
        msg.text(f"Accuracy by {told['by']}, where OTHER is surely worse first:")
        show_rows(told["rows"], _SLICES)
        msg.text(f"Of those that are called worse or better, {100 * told['rate']:g} % at most are so by chance, on average.")
    if told["too_small"]:
        msg.text(f"Not compared: {told['too_small']:,} with fewer than {FEWEST_UNITS} units or {FEWEST_DOCUMENTS} documents.")
