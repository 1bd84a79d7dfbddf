"""Gold labels in the order of the marginals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Span
from spacy.training import Example

from ..types import Ints, Marginals
from .annotations import Annotation, Hashes, columns_of, label_hashes


@dataclass(frozen=True)
class GoldColumns:
    """columns (Ints): For `pair_up`. n_gold, n_unknown (int): Tokens with gold, and with unknown gold labels."""

    columns: Ints
    n_gold: int
    n_unknown: int


def gold_columns(marginals: Marginals, gold: Hashes, labels: Sequence[str]) -> GoldColumns:
    """Return the gold column of each token: -1 if no column is the gold label, -2 without gold.

    gold (Hashes): Gold hash of each token, 0 for none. Where marginals have their own names (lemmas), the column is that of the
    entry with the gold name.
    """
    has_gold = gold != 0
    if marginals.names is None:
        columns = columns_of(gold, labels)
    else:
        columns = np.where(has_gold, -1, -2)
        is_gold = (label_hashes(marginals.names) == gold[marginals.rows]) & has_gold[marginals.rows]
        columns[marginals.rows[is_gold]] = marginals.tags[is_gold]
    return GoldColumns(columns, int(has_gold.sum()), int(np.count_nonzero(columns == -1)))


def count_begins(annotation: Annotation, example: Example, spans: Iterable[Span]) -> Ints:
    """Return how many of these gold spans begin in each predicted unit."""
    n_units = annotation.n_units(example.predicted)
    places = [token.idx for token in example.predicted][:n_units]
    rows = np.searchsorted(places, [span.start_char for span in spans], side="right") - 1
    return np.bincount(np.maximum(rows, 0), minlength=n_units).astype(np.intp)
