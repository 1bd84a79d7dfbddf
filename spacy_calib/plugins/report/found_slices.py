"""`--find-slices`: parts of the data that nobody named, in which scores are surely off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...cli.evaluating.evaluation import Evaluation
from ...cli.evaluating.outputs import Section, Writer
from ...cli.shared.command import option
from ...cli.shared.screen import msg, number

if TYPE_CHECKING:
    from ...metrics.judged_view import JudgedView
    from ...pairs.scored_corpus import ScoredCorpus

_EXAMPLES = 3


def found_sections(
    evaluation: Evaluation,
    paths: Sequence[Path] = (),
    *,
    find_slices: Annotated[bool, option("Search for slices of the data with miscalibrated scores")] = False,
) -> Iterator[Section]:
    """Yield the slices found of each pipe and unit, with "examples". RAISES C610: there are too few documents."""
    from ...gold.keys import fields_of

    fields = fields_of([example.reference for example in evaluation.examples])
    for pipe, corpus, evaluated in evaluation.fitted_pipes():
        for unit, view in evaluated.units.items():
            yield Section(pipe.name, unit, "found_slices", _find(corpus, view, fields), show_found)


FOUND_SLICES = Writer(found_sections, fitted_only=True)


def _find(corpus: ScoredCorpus, view: JudgedView, fields: Mapping[str, list[str | None]]) -> dict[str, Any]:
    """Return a `SliceTable` whose rows have "examples". fields (Mapping): Key -> the name that each Doc has under it."""
    from ...metrics.judged_view import carried_places
    from ...metrics.slices import Slice, judge_slices
    from .properties import Placed, properties_of
    from .slice_search import find_slices

    _, units = carried_places(corpus, view)
    scores = view.calibrated[units]
    placed = Placed(view.starts[units], view.ends[units], view.pairs.tags[units], view.labels, scores)
    properties = properties_of(corpus, placed, fields)
    slices, _ = find_slices(scores, view.pairs.hits[units], view.documents[units], properties, view.seed)
    places = {part.name: units[part.units] for part in slices}
    table = judge_slices(view, [Slice(*item) for item in places.items()], units, view.n_bins, view.seed)
    rows = [{**row, "examples": examples_of(corpus, view, places[row["slice"]], row["gap"] > 0)} for row in table["rows"]]
    return {**table, "rows": rows}


def examples_of(corpus: ScoredCorpus, view: JudgedView, places: Any, too_high: bool) -> list[dict[str, Any]]:
    """Three of a slice, see `plugins.report.passages.in_context`: wrong ones with the highest scores where scores are too high, else right ones with the lowest."""
    import numpy as np

    from .passages import in_context

    candidates = places[view.pairs.hits[places] != too_high]
    order = candidates[np.argsort(view.calibrated[candidates] * (-1 if too_high else 1), kind="stable")]
    return [in_context(corpus, view, pair) for pair in order[:_EXAMPLES].tolist()]


def show_found(table: Mapping[str, Any], units: str) -> None:
    """Print the slices that were found, in words. units (str): What has the labels: "tokens"."""
    if not table["rows"]:
        msg.text(
            f"Nothing was found: no part of the {units} that was searched has scores that are surely off on the other half of the documents."
        )
        return
    msg.text(f"Found on one half of the documents and confirmed on the other, whose figures these are ({units}):")
    for row in table["rows"]:
        lean = "too high" if row["gap"] > 0 else "too low"
        msg.text(
            f"{row['slice'][:1].upper()}{row['slice'][1:]}: scores are {lean} by {abs(row['gap']):.3f} ({row['low']:+.3f} to {row['high']:+.3f}); scored {row['score']:.3f}, "
            f"right {row['right']:.3f}, {row['n']:,} {units} of {row['documents']:,} documents"
        )
        for example in row["examples"]:
            labels = f"{example['carried']} {number(example['calibrated'], 2)}, gold {example['gold']}"
            msg.text(f"    {example['before']}[{example['text']}]{example['after']}  ({labels})")
