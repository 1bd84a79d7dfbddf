"""Examples -> pairs to fit on, and the table that a fit leaves behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy import util
from spacy.training import Example

from .errors import calib_error
from .gold import gold_columns
from .grouped import GroupedRecalibrator
from .marginals.base import Source
from .metrics.calibration_error import calibration_error, group_slices
from .pairs import concatenate, pair_up
from .types import Pairs

_BATCH = 128


@dataclass(frozen=True)
class FitData:
    """What the examples gave.

    pairs (Pairs): Thresholded. counts (Counter): Gold frequency of each label.
    n_docs (int): Documents with scores. n_unknown (int): Tokens whose gold label the component does not know.
    n_gold (int): Tokens with gold. why_missing (str): Why the last unread document could not be read.
    """

    pairs: Pairs
    counts: Counter[str]
    n_docs: int
    n_unknown: int
    n_gold: int
    why_missing: str

    def check(self, layer: str, component: str, threshold: float, min_pairs: int) -> None:
        """RAISES C032: nothing could be read. C030: no gold. C031: all gold labels unknown. C003, C005: too few pairs."""
        if not self.n_docs:
            raise calib_error("C032", component=component, why=self.why_missing or "there are no tokens")
        if not self.n_gold:
            raise calib_error("C030", layer=layer, component=component)
        if self.n_unknown == self.n_gold:
            raise calib_error("C031", n_tags=len(self.counts), component=component)
        if not len(self.pairs):
            raise calib_error("C003", what="calibrator", threshold=threshold)
        if len(self.pairs) < min_pairs:
            raise calib_error("C005", n_pairs=len(self.pairs), threshold=threshold, n_bins=min_pairs)


def collect_fit_data(source: Source, pipe: Any, examples: Iterable[Example], threshold: float) -> FitData:
    """Read the marginals of the predicted Docs and pair them with gold, batch by batch; no Doc is kept.

    RAISES C024, C040, C041: what the source found is no probability.
    """
    layer = source.layer(pipe)
    labels = source.labels(pipe)
    parts: list[Pairs] = []
    counts: Counter[str] = Counter()
    n_docs = n_unknown = n_gold = 0
    why_missing = ""
    for batch in util.minibatch(examples, size=_BATCH):
        given = [eg for eg in batch if len(eg.predicted)]
        counts.update(source.count(pipe, (eg.reference for eg in given)))
        reasons = source.missing(pipe, [eg.predicted for eg in given])
        why_missing = next(filter(None, reasons), why_missing)
        readable = [eg for eg, why in zip(given, reasons, strict=True) if not why]
        if not readable:
            continue
        marginals = source.read(pipe, [eg.predicted for eg in readable]).above(threshold)
        gold = gold_columns(marginals, np.concatenate([layer.aligned_gold(eg) for eg in readable]), labels)
        parts.append(pair_up(marginals, gold.columns))
        n_docs += len(readable)
        n_gold += gold.n_gold
        n_unknown += gold.n_unknown
    return FitData(concatenate(parts), counts, n_docs, n_unknown, n_gold, why_missing)


def summarize_fit(pairs: Pairs, maps: GroupedRecalibrator, n_bins: int = 10) -> list[dict[str, Any]]:
    """A row for all pairs and one per group: what it was fitted on and its error on that same data, raw and calibrated."""
    calibrated = maps.predict(pairs.scores, pairs.tags)
    slices = group_slices(pairs, maps.groups)
    total = int(maps.groups.counts.sum())
    rows = []
    for index in (None, *range(len(maps.groups))):
        inside = slice(None) if index is None else slices[index]
        columns = np.arange(len(maps.groups.of_tag)) if index is None else maps.groups.tags_in(index)
        fit = maps.pooled_fit_ if index is None else maps.fits_[index]
        rows.append(
            {
                "group": "all" if index is None else maps.groups.names[index],
                "tags": len(columns),
                "share": float(maps.groups.counts[columns].sum() / total) if total else None,
                "pairs": fit.pairs,
                "hits": fit.hits,
                "raw": calibration_error(pairs.scores[inside], pairs.hits[inside], n_bins),
                "calibrated": calibration_error(calibrated[inside], pairs.hits[inside], n_bins),
                "fallback": fit.fallback,
            }
        )
    return rows
