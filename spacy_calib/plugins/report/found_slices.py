"""The option --find-slices of `calib evaluate`: search for parts of the data with miscalibrated scores."""

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


def slice_sections(
    evaluation: Evaluation,
    paths: Sequence[Path] = (),
    *,
    find_slices: Annotated[bool, option("Search for slices of the data with miscalibrated scores")] = False,
) -> Iterator[Section]:
    """Search for slices with miscalibrated scores, and yield a section for each pipe and unit; its rows have "examples". RAISES C610."""
    # A `Writer` calls this only if --find-slices was given, so it reads neither `paths` nor `find_slices`.
    from ...gold.keys import fields_of

    fields = fields_of([example.reference for example in evaluation.examples])
    for pipe, corpus, pipe_evaluation in evaluation.fitted_pipes():
        for unit, view in pipe_evaluation.units.items():
            yield Section(pipe.name, unit, "found_slices", _search_view(corpus, view, fields), show_slices)


FOUND_SLICES = Writer(slice_sections, fitted_only=True)


def _search_view(corpus: ScoredCorpus, view: JudgedView, fields: Mapping[str, list[str | None]]) -> dict[str, Any]:
    """Return the table of a view's miscalibrated slices, rows with "examples". fields: Key of metadata -> its value of each Doc."""
    from ...metrics.judged_view import predicted_units
    from ...metrics.slices import Slice, judge_slices
    from .properties import SearchUnits, properties_of
    from .slice_search import find_slices

    _, pairs = predicted_units(corpus, view)
    scores = view.calibrated[pairs]
    units = SearchUnits(view.starts[pairs], view.ends[pairs], view.pairs.tags[pairs], view.labels, scores)
    properties = properties_of(corpus, units, fields)
    slices, _ = find_slices(scores, view.pairs.hits[pairs], view.documents[pairs], properties, view.seed)
    slice_pairs = {part.name: pairs[part.units] for part in slices}
    table = judge_slices(view, [Slice(*item) for item in slice_pairs.items()], pairs, view.n_bins, view.seed)
    rows = [
        {**row, "examples": pick_examples(corpus, view, slice_pairs[row["slice"]], row["gap"] > 0)} for row in table["rows"]
    ]
    return {**table, "rows": rows}


def pick_examples(corpus: ScoredCorpus, view: JudgedView, pairs: Any, too_high: bool) -> list[dict[str, Any]]:
    """Return three examples of a slice: if its scores are too high, wrong ones with the highest scores, else right ones with the lowest."""
    import numpy as np

    from .passages import describe_pair

    candidates = pairs[view.pairs.hits[pairs] != too_high]
    order = candidates[np.argsort(view.calibrated[candidates] * (-1 if too_high else 1), kind="stable")]
    return [describe_pair(corpus, view, pair) for pair in order[:_EXAMPLES].tolist()]


def show_slices(table: Mapping[str, Any], units: str) -> None:
    """Print the slices with their examples. units (str): Word for several units, such as "tokens"."""
    if not table["rows"]:
        msg.text(
            f"Nothing was found: no part of the {units} that was searched has miscalibrated scores on the other half of the documents."
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
