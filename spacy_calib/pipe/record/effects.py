"""What counts of labels miss if units are taken for independent: documents differ, maps are off, labels lack scores.

The first two are shifts of log-odds. A document's shift moves its expected number of a label by the shift times v, the
sum of p (1 - p) of its units: to first order, the number in a part varies by sum v + tau^2 sum v_d^2. The variance
tau^2 is learned by moments, as in `estimates.Residuals`, from scores of maps that did not see the document; labels with
few units take most of it from the others (empirical Bayes). Units whose gold label is below the threshold have no score
to add up: their rate is learned, and how unevenly documents have them.

What annotators of another source hold for right, no fit can know: there the maps' expectation may be farther off than
the number found, and documents of one source do not show it. A source's gold count of a label is the number found plus
an error: a shift times v, and noise. Each label has few sources to learn the width of its shifts from: so the widths of
all labels have a common distribution on a grid, learned by expectation maximization (Kiefer and Wolfowitz 1956). It has
long tails: on most labels sources agree, on some not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...errors import calib_error
from ...schema import Saved, kept
from ...types import Floats, Ints
from ..record_form import EFFECTS, N_WIDTHS, effects_agree
from .estimates import Residuals, Sums, cross_sums, effective_documents, sum_by


@dataclass(frozen=True)
class Effects(Saved):
    """How the counts of a label depart from those of independent units.

    between (float): Variance of a document's shift of log-odds. shift (float): The shift of all documents. shared (float):
    Variance of its error. missed (float): Units that hold without a score of the label, per unit of any. uneven (float):
    Variance of that rate between documents, and unsure (float): of its error, in squares of the rate. sources (int): Sources of
    gold. widths (tuple[float, ...]): Probability of each of WIDTHS for another source; () if unknown.
    """

    between: float = kept(EFFECTS["between"], 0.0)
    shift: float = kept(EFFECTS["shift"], 0.0)
    shared: float = kept(EFFECTS["shared"], 0.0)
    missed: float = kept(EFFECTS["missed"], 0.0)
    uneven: float = kept(EFFECTS["uneven"], 0.0)
    unsure: float = kept(EFFECTS["unsure"], 0.0)
    widths: tuple[float, ...] = kept(EFFECTS["widths"], ())
    sources: int = kept(EFFECTS["sources"], 0)

    @classmethod
    def agree(cls, fields: dict[str, Any]) -> str:
        return effects_agree(fields)


# Widths of the shifts by which a source may be off: standard deviations, in log-odds.
WIDTHS = 0.05 * 2.0 ** np.arange(N_WIDTHS)


def of_new_source(sources: int) -> float:
    """Return the factor on the width of shifts for an unknown source, as few sources show too little; chosen on EWT and GUM."""
    return float(np.sqrt(1 + 2 / sources))


# The largest variance of log-odds: with wider shifts all is possible, and a saved state could not be read again.
_WIDEST = 1e6

_Moments = dict[str, float]


def effects_of_labels(
    chances: Floats, holds: Floats, documents: Ints, labels: Ints, names: Sequence[str]
) -> dict[str, Effects]:
    """Learn the effects of each label that has open units in two documents or more.

    chances (Floats): Of each pair of a unit and a label, by maps that did not see the document. holds (Floats): 1 where the
    unit has the label, else 0. labels (Ints): Its label's place in `names`. RAISES C002: lengths differ.
    """
    if not len(chances) == len(holds) == len(documents) == len(labels):
        raise calib_error(
            "C002", what="Counting", first="answer and document", second="chance", n_first=len(holds), n_second=len(chances)
        )
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(len(names) + 1))
    moments_by_label: dict[str, _Moments] = {}
    for place, name in enumerate(names):
        index = order[starts[place] : starts[place + 1]]
        if len(index):
            moments = _moments(chances[index], holds[index], documents[index])
            if moments is not None:
                moments_by_label[name] = moments
    # Each label's moments are shrunk towards those of all labels as far as they are noise.
    if not moments_by_label:
        return {}
    totals = {
        key: np.array([values_of_label[key] for values_of_label in moments_by_label.values()])
        for key in ("open", "squares", "excess", "noise", "residual")
    }
    variances = _shrink_variances(totals["excess"], totals["squares"], totals["noise"])
    # The label's shift: its residual, of which its own error explains a part.
    error = (totals["open"] + variances * totals["squares"]) / np.square(totals["open"])
    shift = totals["residual"] / totals["open"]
    weight = 1 / error
    true = max(0.0, float((weight * (np.square(shift) - error)).sum() / weight.sum())) if len(moments_by_label) > 1 else 0.0
    trust = true / (true + np.maximum(error, 1e-300))
    remaining = np.maximum(true * (1 - trust), 0.0) if true > 0 else error
    variances, remaining = np.minimum(variances, _WIDEST), np.minimum(remaining, _WIDEST)
    shift = np.clip(shift, -np.sqrt(_WIDEST), np.sqrt(_WIDEST))
    values = zip(variances.tolist(), (trust * shift).tolist(), remaining.tolist(), strict=True)
    return {name: Effects(*values_of_label) for name, values_of_label in zip(moments_by_label, values, strict=True)}


def _moments(chances: Floats, holds: Floats, documents: Ints) -> _Moments | None:
    """Sum over the documents of one label; None where fewer than two have open units (with 0 < p < 1)."""
    distinct, numbers = np.unique(documents, return_inverse=True)
    n_docs = len(distinct)
    opens = sum_by(numbers, chances * (1 - chances), n_docs)
    if (opens > 0).sum() < 2:
        return None
    sums = Sums(sum_by(numbers, chances, n_docs)[:, None], opens[:, None], opens)
    residuals = Residuals.of(sum_by(numbers, holds, n_docs)[:, None], sums)
    n_open = float(opens.sum())  # residuals.units may be no less than 1
    return {
        "open": n_open,
        "squares": residuals.squares,
        "excess": float(residuals.moment[0, 0] - residuals.independent[0]),
        "noise": float((opens + 2 * np.square(opens)).sum()),  # variance of a squared residual of about Poisson counts
        "residual": float(residuals.residual[0]),
    }


def _shrink_variances(excess: Floats, squares: Floats, noise: Floats) -> Floats:
    """A variance by moments per label, shrunk to that of all as far as `excess` (factor `squares`) is noise."""
    common = max(0.0, float(excess.sum())) / max(float(squares.sum()), 1e-300)
    by_label = excess / np.maximum(squares, 1e-300)
    trust = (
        common**2 / np.maximum(common**2 + noise / np.maximum(np.square(squares), 1e-300), 1e-300) if len(excess) > 1 else 1.0
    )
    return np.asarray(np.maximum(0.0, trust * by_label + (1 - trust) * common))


def with_missed(
    effects: dict[str, Effects], missed_labels: Ints, documents: Ints, sizes: Floats, names: Sequence[str]
) -> dict[str, Effects]:
    """Add the effects of units that have no score of their gold label.

    missed_labels (Ints): Gold label of each such unit, a place in `names`. documents (Ints): Its document. sizes (Floats): Units with
    gold in each document.
    """
    total = float(sizes.sum())
    labels, rows = np.unique(missed_labels, return_inverse=True)
    if not len(labels):
        return effects
    counts = cross_sums(rows, documents, (len(labels), len(sizes)))
    rates = counts.sum(axis=1) / total
    means = rates[:, None] * sizes
    squares = np.square(means).sum(axis=1)
    excess = (np.square(counts - means) - means).sum(axis=1)
    uneven = _shrink_variances(excess, squares, (means + 2 * np.square(means)).sum(axis=1))
    unsure = 1 / counts.sum(axis=1) + uneven / effective_documents(sizes)
    new_effects = dict(effects)
    for label, *values in zip(labels.tolist(), rates.tolist(), uneven.tolist(), unsure.tolist(), strict=True):
        missing, spread, error = values
        new_effects[names[label]] = replace(
            new_effects.get(names[label], Effects()), missed=missing, uneven=spread, unsure=error
        )
    return new_effects


# Weight of the even prior on the grid, in labels; labels with fewer open units than this are left out; steps of the EM.
_PRIOR, _OPEN, _STEPS = 1.0, 0.5, 100


class SourceSums(NamedTuple):
    """Counts by source and label. gold, found (Floats): Of gold and model. opens, squares (Floats): Sum of p (1 - p), squared."""

    gold: Floats
    found: Floats
    opens: Floats
    squares: Floats


def source_sums(
    chances: Floats, documents: Ints, labels: Ints, top_pairs: Ints, gold: tuple[Ints, Ints], of_sources: Ints, n_labels: int
) -> SourceSums:
    """Sum pairs by source and label. gold: (document, label) of units. of_sources (Ints): Of each document, or -1."""
    names, sources = np.unique(of_sources, return_inverse=True)
    shape = len(names), n_labels
    source_of_pair, opens = sources[documents], chances * (1 - chances)
    cells, inverse = np.unique(documents * n_labels + labels, return_inverse=True)
    of_documents = sum_by(inverse, opens, len(cells))
    return SourceSums(
        gold=cross_sums(sources[gold[0]], gold[1], shape),
        found=cross_sums(source_of_pair[top_pairs], labels[top_pairs], shape),
        opens=cross_sums(source_of_pair, labels, shape, opens),
        squares=cross_sums(sources[cells // n_labels], cells % n_labels, shape, np.square(of_documents)),
    )


def with_widths(effects: Mapping[str, Effects], sums: SourceSums, names: Sequence[str]) -> dict[str, Effects]:
    """Add the widths of shifts by which found numbers are off. names (Sequence[str]): The labels."""
    new_effects = dict(effects)
    index = np.array([place for place, name in enumerate(names) if name in effects], dtype=np.intp)
    known_sums = SourceSums(*(table[:, index] for table in sums))
    variances = np.array([effects[names[place]].between for place in index.tolist()])
    weights = weights_of(
        known_sums.gold - known_sums.found, known_sums.opens, known_sums.opens + variances * known_sums.squares
    )
    for place, shares in zip(index.tolist(), weights.tolist() if weights is not None else (), strict=False):
        new_effects[names[place]] = replace(effects[names[place]], sources=len(sums.gold), widths=tuple(shares))
    return new_effects


def between_sources(errors: Floats, opens: Floats, noise: Floats) -> float:
    """Variance, by moments, of a source's shift of log-odds (gold minus expected counts); 0 for one. See `weights_of`."""
    n, squares = len(errors), float(np.square(opens).sum())
    excess = float((np.square(errors) - noise).sum())
    return min(max(0.0, excess) / squares * n / (n - 1), _WIDEST) if n > 1 and squares > 0 else 0.0


def weights_of(errors: Floats, opens: Floats, noise: Floats) -> Floats | None:
    """P(each of WIDTHS) by label, (L, n_widths), from (S, L) errors; None without open units. noise: Without a shift."""
    telling = (opens > _OPEN).any(axis=0)
    if not telling.any():
        return None
    variance = np.square(WIDTHS * opens[..., None]) + np.maximum(noise, 1e-9)[..., None]
    logs = -0.5 * (np.square(errors)[..., None] / variance + np.log(variance)).sum(axis=0)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    common = np.full(len(WIDTHS), 1 / len(WIDTHS))
    for _ in range(_STEPS):
        products = likely[telling] * common
        shares = (products / products.sum(axis=1, keepdims=True)).sum(axis=0) + _PRIOR / len(WIDTHS)
        common = shares / shares.sum()
    products = likely * common
    return np.asarray(products / products.sum(axis=1, keepdims=True))
