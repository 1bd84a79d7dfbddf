"""What `spacy evaluate` says of coreference: agreement of clusters with the gold, and calibration errors of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from spacy.training import Example

from ..metrics.calibration_error import calibration_error
from ..types import Floats
from .inference.figures import FIGURES, NOTHING, Cluster
from .mentions import clusters_in
from .view import DocCoref, coref_view

GoldMentions = dict[tuple[int, int], int]


def score_coref(examples: Iterable[Example], gold_of: Callable[[Example], GoldMentions]) -> dict[str, float | None]:
    """F of MUC, B3, CEAF-e and LEA over clusters of two or more mentions (right where their tokens are), and SMCE of
    the pairs that reach the threshold, raw and calibrated.

    gold_of (Callable): Gold mentions in tokens of the predicted Doc -> clusters. RETURNS (dict): All None without gold.
    """
    totals = dict.fromkeys(FIGURES, NOTHING)
    raw, calibrated, hits = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, dtype=bool)]
    for example in examples:
        view, gold = coref_view(example.predicted), gold_of(example)
        if view is None or not gold:
            continue
        wanted = clusters_of_several(gold)
        for name, figure in FIGURES.items():
            totals[name] += figure(found_clusters(view), wanted)
        clusters = clusters_in(view.found, gold)
        raw.append(view.pairs.chances)
        calibrated.append(view.pairs.chances if view.calibrated is None else view.calibrated)
        hits.append(clusters[view.pairs.later] == clusters[view.pairs.earlier])
    scored: dict[str, float | None] = {
        f"coref_{name}": shares.f if shares.recall[1] else None for name, shares in totals.items()
    }
    for name, scores in (("coref_smce", calibrated), ("coref_smce_raw", raw)):
        scored[name] = _error(np.concatenate(scores), np.concatenate(hits))
    return scored


def _error(scores: Floats, hits: Any) -> float | None:
    return calibration_error(scores, hits) if len(scores) else None


def clusters_of_several(gold: GoldMentions) -> list[Cluster]:
    """The gold clusters of two or more mentions, a mention being (first token, the one after the last)."""
    held: dict[int, set[tuple[int, int]]] = {}
    for bounds, cluster in gold.items():
        held.setdefault(cluster, set()).add(bounds)
    return [frozenset(one) for one in held.values() if len(one) > 1]


def found_clusters(view: DocCoref) -> list[Cluster]:
    """The clusters on a Doc in the form of `clusters_of_several`."""
    return [frozenset((span.start, span.end) for span in cluster) for cluster in view.clusters]
