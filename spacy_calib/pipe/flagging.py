"""Which tokens the cut-offs that bound misses flag, and as what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..calibration.recall_cutoffs import EntityScores, EntityTypes, RecallCutoffs
from ..calibration.tokens import Calibrated, silent_tokens
from ..doc.annotations import Annotation
from ..doc.doubtful import Flags
from ..pairs.marginals import Scores
from ..types import Floats, Ints


def flags_of(
    cutoffs: RecallCutoffs | None,
    scores: Scores,
    calibrated: Calibrated,
    labels: Sequence[str],
    annotation: Annotation,
    threshold: float,
) -> Flags | None:
    """The flags of all tokens that a source read; None without cut-offs.

    scores (Scores): Of the source. calibrated (Calibrated): Its entries above the threshold. labels (Sequence[str]): Of the columns.
    """
    if cutoffs is None:
        return None
    types, marginals = EntityTypes.of(labels, annotation.prefixed), calibrated.marginals
    n = marginals.n_tokens
    entries = EntityScores(marginals.rows, types.of_label[marginals.tags], calibrated.scores, n, threshold)
    by_key = cutoffs.flags(entries, types)
    flagged = np.any([np.zeros(n, dtype=bool), *by_key.values()], axis=0)
    flagged[silent_tokens(scores, marginals.rows)] = False
    rows = np.flatnonzero(flagged)
    likelihood = _likelihoods(scores, entries, types, rows)
    if cutoffs.per == "label":  # as one of those whose own cut-off says so
        likelihood[~np.array([by_key.get(name, np.zeros(n, dtype=bool))[rows] for name in types.names])] = -1.0
    kinds = likelihood.argmax(axis=0)
    certainty = entries.inside[rows] if cutoffs.per == "all" else likelihood[kinds, np.arange(len(rows))]
    column = flagged.astype(np.int8)
    column[silent_tokens(scores, marginals.rows)] = -1
    return Flags(column, rows, types.names, kinds, certainty)


def _likelihoods(scores: Scores, entries: EntityScores, types: EntityTypes, rows: Ints) -> Floats:
    """P(type) of each type at some tokens, shape (n_types, len(rows)): calibrated where the type has an entry, else the raw one, which is below the
    threshold.
    """
    found = np.zeros((len(types.names), len(rows)))
    for column, kind in enumerate(types.of_label.tolist()):
        if kind >= 0:
            found[kind] += scores.at(rows, np.full(len(rows), column))
    for kind in range(len(types.names)):
        found[kind] = np.where(entries.has(kind)[rows], entries.of_type(kind)[rows], found[kind])
    return found
