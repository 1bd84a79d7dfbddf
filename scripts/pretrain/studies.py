"""What labelled documents of a source that the fit did not see add: the adapted scores beside a fit from nothing on the same documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from pretrain.entities import Judged
from pretrain.tags import JudgedTags

from spacy_calib.calibration.adaptation.adaptation import OF_PRETRAINED, OF_PRETRAINED_SPANS, Adaptation, GoldEntries, Prior
from spacy_calib.calibration.recalibrators import Platt
from spacy_calib.calibration.spans import SpanRecalibrator
from spacy_calib.metrics import log_loss
from spacy_calib.types import Floats, Groups, Ints

DRAWS = 20
# Predicted entities, or documents, that are labelled.
ENTITIES, DOCUMENTS = (20, 50, 100), (5, 10, 20)
# By so much log loss may an adaptation be worse in one draw of ten.
WORSE = 0.005


def study(
    source: str,
    entries: GoldEntries,
    groups: Groups,
    prior: Prior,
    sizes: Sequence[int],
    units: Floats,
    from_nothing: Callable[[Ints, Ints], Floats],
) -> list[dict[str, Any]]:
    """A row for each size: mean log loss of the leading entries of all other documents, before, after and by a fit from nothing.

    units (Floats): What each entry counts towards the size. from_nothing (Callable): (labelled, others) -> scores of the others that lead.
    """
    rows = []
    for size in sizes:
        losses = []
        for draw in range(DRAWS):
            order = np.random.default_rng(draw).permutation(np.unique(entries.documents))
            counts = np.array([units[entries.documents == document].sum() for document in order[: 4 * size]])
            chosen = order[: int(np.searchsorted(np.cumsum(counts), size)) + 1]
            known = np.isin(entries.documents, chosen)
            labelled, others = np.flatnonzero(known), np.flatnonzero(~known)
            adaptation = Adaptation.fit(entries.take(labelled), groups, prior)
            new = entries.take(others)
            leads = np.flatnonzero(new.leads)
            moved = adaptation.move(new.scores, new.leads, new.tags)
            right = new.hits[leads]
            scores = (new.scores[leads], moved[leads], from_nothing(labelled, others))
            losses.append([float(log_loss(one, right) or 0.0) for one in scores])
        before, after, nothing = np.array(losses).T
        rows.append(
            {
                "source": source, "labelled": size, "before": float(before.mean()), "after": float(after.mean()),
                "from_nothing": float(nothing.mean()), "worse": int((after > before + WORSE).sum()), "draws": DRAWS,
            }
        )  # fmt: skip
    return rows


def of_entities(name: str, judged: Judged, table: Mapping[str, float], event: str) -> list[dict[str, Any]]:
    """Adapting a map of entities that did not see this source. table: Its coefficients."""
    scores, right = judged.score(table), judged.right(event)
    spans, raw, documents = judged.evidence.spans, judged.evidence.raw, judged.documents[judged.chosen]
    groups = Groups(judged.labels, np.arange(len(judged.labels)))
    entries = GoldEntries(scores, right, np.ones(len(scores), dtype=bool), spans.labels, documents)

    def from_nothing(labelled: Ints, others: Ints) -> Floats:
        return SpanRecalibrator(groups).fit(spans.take(labelled), right[labelled]).predict(spans.take(others), raw[others])

    return study(name, entries, groups, OF_PRETRAINED_SPANS, ENTITIES, np.ones(len(scores)), from_nothing)


def of_tags(name: str, judged: JudgedTags) -> list[dict[str, Any]]:
    """Adapting a calibration of tags that did not see this source; the fit from nothing is a Platt map of all pairs."""
    entries = judged.entries
    first = np.zeros(len(entries))
    first[np.unique(entries.documents, return_index=True)[1]] = 1.0  # each document counts once

    def from_nothing(labelled: Ints, others: Ints) -> Floats:
        leads = others[entries.leads[others]]
        return Platt().fit(judged.raw[labelled], entries.hits[labelled]).predict(judged.raw[leads])

    return study(name, entries, judged.groups, OF_PRETRAINED, DOCUMENTS, first, from_nothing)
