"""How true scores are in parts of the data: those that share a value of a key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ...cli.evaluating.evaluation import Judgement, judged_units
from ...cli.shared.screen import Column, msg, number, show_rows, whole

if TYPE_CHECKING:
    from ...cli.evaluating.options import EvaluateRun
    from ...metrics.judged_view import JudgedView
    from ...pairs.scored_corpus import ScoredCorpus

_EXAMPLES = 3
_three = partial(number, digits=3)
COLUMNS = (
    Column("", "off", lambda off: "OFF" if off else "", align="l"),
    Column("Slice", "slice", align="l"),
    Column("Documents", "documents", whole),
    Column("Labels", "n", whole),
    Column("Mean score", "score", _three),
    Column("Right", "right", _three),
    Column("Gap", "", lambda row: f"{row['gap']:+.3f}"),
    Column("95 % interval", "", lambda row: "-" if row["low"] is None else f"{row['low']:+.3f} to {row['high']:+.3f}"),
    Column("Error", "calibrated", _three),
    Column("Floor 95 %", "floor95", _three),
)


def slices_of(found: Judgement, run: EvaluateRun) -> dict[tuple[str, str], dict[str, Any]]:
    """(pipe, "tokens", "documents" or "entities") -> what `metrics.slices.judge_slices` says of the values of --by, with "by"."""
    from ...metrics.slices import judge_slices, slices_by

    told = {}
    for model in found.models:
        for unit, judged in judged_units(model, run).items():
            docs, units = placed(model.corpus, judged)
            slices = slices_by(found.values or (), docs, units)
            told[model.pipe.name, unit] = {"by": run.by, **judge_slices(judged, slices, units, judged.n_bins, judged.seed)}
    return told


def found_slices(found: Judgement, run: EvaluateRun) -> dict[tuple[str, str], dict[str, Any]]:
    """(pipe, unit) -> the slices found: "rate", and "rows" with "examples". RAISES C610: there are too few documents."""
    from ...metrics.slices import Slice, judge_slices
    from .properties import Placed, properties_of
    from .slice_search import find_slices

    told = {}
    for model in found.models:
        for unit, judged in judged_units(model, run).items():
            _, units = placed(model.corpus, judged)
            scores = judged.calibrated[units]
            where = Placed(judged.starts[units], judged.ends[units], judged.pairs.tags[units], judged.labels, scores)
            properties = properties_of(model.corpus, where, found.fields)
            slices, _ = find_slices(scores, judged.pairs.hits[units], judged.documents[units], properties, judged.seed)
            own = {one.name: units[one.units] for one in slices}
            rows = judge_slices(
                judged, [Slice(name, places) for name, places in own.items()], units, judged.n_bins, judged.seed
            )
            for row in rows["rows"]:
                row["examples"] = examples_of(model.corpus, judged, own[row["slice"]], row["gap"] > 0)
            told[model.pipe.name, unit] = rows
    return told


def examples_of(corpus: ScoredCorpus, judged: JudgedView, places: Any, too_high: bool) -> list[dict[str, Any]]:
    """Three of a slice, see `metrics.judged_view.in_context`: wrong ones with the highest scores where scores are too high, else right ones with the lowest."""
    import numpy as np

    from ...metrics.judged_view import in_context

    own = places[judged.pairs.hits[places] != too_high]
    order = own[np.argsort(judged.calibrated[own] * (-1 if too_high else 1), kind="stable")]
    return [in_context(corpus, judged, pair) for pair in order[:_EXAMPLES].tolist()]


def placed(corpus: ScoredCorpus, judged: JudgedView) -> tuple[Any, Any]:
    """(Doc, place in the pairs) of each token with the label on it, or of each entity."""
    from ...metrics.judged_view import carried_by

    units = carried_by(corpus, judged)
    return corpus.docs[judged.starts[units]], units


def show_slices(told: Mapping[str, Any], units: str) -> None:
    """Print how true scores are in each slice. units (str): What has the labels: "tokens"."""
    rows, small = told["rows"], told["too_small"]
    if rows:
        msg.text(f"Where scores are off, by {told['by']} (of the {units} with their likeliest label):")
        show_rows(rows, COLUMNS)
        off = sum(row["off"] for row in rows)
        msg.text(
            f"{_of(off, len(rows))} surely off; of those that are called so, {100 * told['rate']:g} % at most are so by chance, on average. "
            "A gap above 0: scores are too high."
        )
    if small:
        from ...metrics.slices import FEWEST_DOCUMENTS, FEWEST_UNITS

        what = f"with fewer than {FEWEST_UNITS} {units} or {FEWEST_DOCUMENTS} documents"
        msg.text(f"{small:,} {'more' if rows else 'slices'} {what} {'is' if small == 1 and rows else 'are'} not judged.")


def show_found(told: Mapping[str, Any], units: str) -> None:
    """Print the slices that were found, in words. units (str): What has the labels: "tokens"."""
    if not told["rows"]:
        msg.text(
            f"Nothing was found: no part of the {units} that was searched has scores that are surely off on the other half of the documents."
        )
        return
    msg.text(f"Found on one half of the documents and confirmed on the other, whose figures these are ({units}):")
    for row in told["rows"]:
        lean = "too high" if row["gap"] > 0 else "too low"
        msg.text(
            f"{row['slice'][:1].upper()}{row['slice'][1:]}: scores are {lean} by {abs(row['gap']):.3f} ({row['low']:+.3f} to {row['high']:+.3f}); scored {row['score']:.3f}, "
            f"right {row['right']:.3f}, {row['n']:,} {units} of {row['documents']:,} documents"
        )
        for one in row["examples"]:
            said = f"{one['carried']} {number(one['calibrated'], 2)}, gold {one['gold']}"
            msg.text(f"    {one['before']}[{one['text']}]{one['after']}  ({said})")


def _of(off: int, n: int) -> str:
    return f"{off or 'None'} of {n:,} slice{'s' if n > 1 else ''} {'is' if off < 2 else 'are'}"
