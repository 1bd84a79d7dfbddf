"""Texts -> the units of the queue in their order, and what is told of all units."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import calib_error
from ...pairs.documents import DOCUMENT
from ..shared.scored import ScoredModel, of_pipe

if TYPE_CHECKING:
    from ...corpus.review.sums import UnitSums
    from ...corpus.review.units import Units
    from ...corpus.scored import ScoredCorpus
    from ...types import Floats, Ints
    from ..rank import RankOptions

MIN_WORDS = 3


class Queue(NamedTuple):
    """doubt (Floats): Of each unit. order (Ints): The units of the queue, first to last. left_out (dict): How many are not, and why."""

    doubt: Floats
    order: Ints
    left_out: dict[str, int]


def in_order(run: RankOptions, kind: str, corpus: ScoredCorpus, units: Units, once: bool) -> Queue:
    """once (bool): Whether repeats are left out."""
    from ...corpus.review.queue import below_cutoff, long_enough, without_repeats
    from ...corpus.review.ranking import review_order
    from ...corpus.review.units import unit_doubts

    doubt = unit_doubts(corpus, units, run.by, run.seed)
    order = review_order(doubt, unit_doubts(corpus, units, "raw"))
    asked = order[below_cutoff(corpus)[order]] if run.not_accepted else order
    long = long_enough(corpus, units, asked, least_words(run.min_words, kind))
    kept = without_repeats(corpus, units, long) if once else long
    left_out = {"accepted": len(order) - len(asked), "too_short": len(asked) - len(long), "repeats": len(long) - len(kept)}
    return Queue(doubt, kept, left_out)


def ranked(run: RankOptions, sums: list[UnitSums]) -> ScoredModel:
    """What the calib pipe says; of many texts the Docs of the first units of the queue.

    sums (list): Here one is put that tells of all units, where the Docs are not all there. RAISES C065, C531: entities, or those below their cut-off,
        are asked of a pipe without any; before it runs.
    """
    from ...corpus.parts import Kept, numbered
    from ...corpus.review.sums import UnitSums
    from ...corpus.review.units import units_of
    from ..shared.texts import holds_gold

    nlp, pipe = run.open()
    wanted_unit = "entity" if run.not_accepted else run.unit
    check_unit(wanted_unit, pipe.spans.groups is not None, pipe.fit_info.row_unit, pipe.name, pipe.source.component)
    if run.not_accepted and pipe.spans.cutoffs is None:
        raise calib_error("C531", name=pipe.name)
    if run.needs_all or holds_gold(run.data):
        return of_pipe(pipe, *run.score(nlp, pipe, what="Ranking"))

    def kind_of(corpus: ScoredCorpus) -> str:
        return unit_of(of_pipe(pipe, corpus, None), run.unit)

    def wanted(corpus: ScoredCorpus) -> Ints:
        units = units_of(corpus, kind_of(corpus))
        order = in_order(run, units.kind, corpus, units, not run.repeats).order
        return np.unique(corpus.docs[units.firsts[order[: run.n_ranked(len(order))]]])

    def count(corpus: ScoredCorpus) -> None:
        units = units_of(corpus, kind_of(corpus))
        if not sums:
            sums.append(UnitSums(least_words(run.min_words, units.kind), not run.repeats, run.not_accepted))
        sums[0].add(corpus, units)

    kept = Kept(wanted, count)
    for corpus in numbered(run.score_blocks(nlp, pipe, what="Ranking")):
        kept.add(corpus)
    return of_pipe(pipe, kept.corpus, None)


def least_words(min_words: int | None, kind: str) -> int:
    """Words that a unit needs."""
    return (MIN_WORDS if kind == "sentence" else 0) if min_words is None else min_words


def unit_of(model: ScoredModel, unit: str | None) -> str:
    """RAISES C065, C265: see `check_unit`."""
    with_entities, own = model.span_groups is not None, model.corpus.row_unit
    check_unit(unit, with_entities, own, model.name, model.component)
    return unit or ("entity" if with_entities and model.spans_first else own)


def check_unit(unit: str | None, with_entities: bool, own: str, name: str, component: str) -> None:
    """own (str): What has labels. RAISES C065: entities are asked of what has none. C265: documents where tokens have the labels, or the other
    way round.
    """
    if unit == "entity" and not with_entities:
        raise calib_error("C065", name=name, component=component or "the source")
    if unit is not None and (unit == DOCUMENT) != (own == DOCUMENT):
        raise calib_error("C265", name=name, component=component or "the source", own=own, given=unit)


def findings(corpus: ScoredCorpus, units: Units, seed: int) -> dict[str, Any]:
    """What is known of the order: see `rank`."""
    from ...corpus.review.ranking import SHARES, compare_signals, expected_shares
    from ...corpus.scored import UNKNOWN, WRONG

    known = bool((units.right != UNKNOWN).any())
    return {
        "units": len(units),
        "known": int((units.right != UNKNOWN).sum()),
        "wrong": int((units.right == WRONG).sum()) if known else None,
        "expected_wrong": float((1 - units.calibrated).sum()),
        "shares": list(SHARES),
        "expected": expected_shares(units),
        "signals": [asdict(row) for row in compare_signals(corpus, units, seed=seed)] if known else None,
    }


def findings_of_sums(sums: UnitSums) -> dict[str, Any]:
    """The same of units of which no gold is known, from sums."""
    from ...corpus.review.ranking import SHARES

    return {
        "units": sums.n,
        "known": 0,
        "wrong": None,
        "expected_wrong": sums.expected_wrong,
        "shares": list(SHARES),
        "expected": sums.expected_shares(),
        "signals": None,
    }


def left_out_of(sums: UnitSums) -> dict[str, int]:
    """See `Queue.left_out`."""
    return {"accepted": sums.accepted, "too_short": sums.too_short, "repeats": sums.repeats}
