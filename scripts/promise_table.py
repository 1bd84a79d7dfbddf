"""How often a promised precision holds, for cut-offs found in four ways, as Markdown.

    python scripts/promise_table.py
    python scripts/promise_table.py CrossNER --cells

A promise: with 95 % confidence, at least this share of what scores the cut-off or more is right. A draw is random gold of a source, whole
documents or what `calib rank --order random` asks, single entities; it holds if so many of the source's other entities above its cut-off are right. Ours is `calib threshold`;
MAPIE's are its BinaryClassificationController, by Holm's correction and by a fixed sequence from high cut-offs to low ones; "observed"
is the lowest cut-off at which the draw itself reaches the precision. Kept is the share of the right ones among the other entities that
is accepted, where a draw without a promise accepts none. Scores are those of `calib pretrained`. UNER-EWT and Broad Twitter are among what
its card was fitted on; WikiNEuRal is silver: its gold was made by machines. SPACY_CALIB_DATA names the data.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from frame import MODEL, head, make_parser, row
from numpy.typing import NDArray
from pretrain.entities import FULL, gather
from pretrain.sources import ENTITIES, FURTHER, GITHUB, TO_THREE, Source, runs
from quality.readers import Documents

from spacy_calib.calibration.thresholds import find_thresholds
from spacy_calib.plugins.pretrained.card import card_folder
from spacy_calib.plugins.review.queue.choosing import sample_entities
from spacy_calib.types import Floats, Ints

FIELDS = ("politics", "science", "literature", "music", "ai")
CARD = "en_core_web_sm-ner"


def _crossner() -> Documents:
    return [document for field in FIELDS for document in runs("crossner", field)]


_WIKINEURAL = partial(runs, "wikineural_en", "test")
SOURCES = {
    "UNER-EWT": ENTITIES[0],
    "Broad Twitter": ENTITIES[2],
    "CrossNER": replace(FURTHER[0], name="CrossNER", read=_crossner),
    "WikiNEuRal": Source("WikiNEuRal", f"{GITHUB}Babelscape/wikineural", "d2e28c770cba2b285e742529ae18ed849e336c65", "CC BY-NC-SA 4.0", _WIKINEURAL, TO_THREE, fitted=False),
}  # fmt: skip
SILVER = ("WikiNEuRal",)
SIZES, PRECISIONS, CONFIDENCE = (60, 120, 250), (0.7, 0.8, 0.9), 0.95
WHOLE, SINGLE = "documents", "entities"
N_DRAWS = 200
# Of MAPIE's fixed sequence: with its default of one, the cut-off .99, no draw of 250 entities promises even .7, in any source.
N_STARTS = 10
# With fewer promises a share of them says little.
MIN_PROMISES = 50


class Scored(NamedTuple):
    """The entities of a source: calibrated scores, whether each is right, and its document, all of shape (n,)."""

    scores: Floats
    hits: NDArray[np.bool_]
    documents: Ints

    def take(self, index: NDArray[Any]) -> Scored:
        return Scored(*(values[index] for values in self))


class Outcome(NamedTuple):
    """What became of the draws of one cell: promises made, promises that held, mean share of the right ones kept."""

    promises: int
    held: int
    kept: float


def score_source(source: Source, model: str, cache: Path) -> Scored:
    """Score a source with the maps of CARD, from what a pipeline found there, in this run or in an earlier one."""
    card = json.loads((card_folder() / f"{CARD}.json").read_text(encoding="utf8"))
    entities = gather(model, [source], cache)[source.name]
    return Scored(entities.score(card["maps"][FULL]), entities.right("article"), entities.documents[entities.chosen])


# Ways to find a cut-off: (a draw, the precision) -> the cut-off, or None without a promise


def ours(draw: Scored, precision: float) -> float | None:
    return find_thresholds(*draw, ["all"] * len(draw.hits), {"all": precision}, CONFIDENCE)["all"].cutoff


def mapie(draw: Scored, precision: float, n_starts: int | None = None) -> float | None:
    """MAPIE's best cut-off of its hundred: by a fixed sequence from high to low with so many starts, or by Holm's correction."""
    from mapie.risk_control import BinaryClassificationController, FWERFixedSequenceTesting

    controller = BinaryClassificationController(
        lambda scores: np.stack([1 - scores, scores], axis=1),
        "precision",
        precision,
        CONFIDENCE,
        list_predict_params=np.linspace(0.99, 0, 100),
        fwer_method=FWERFixedSequenceTesting(n_starts) if n_starts else "bonferroni_holm",
    )
    with warnings.catch_warnings():  # no cut-off is a result here
        warnings.simplefilter("ignore")
        controller.calibrate(draw.scores, draw.hits.astype(int))
    return None if controller.best_predict_param is None else float(controller.best_predict_param)


def observed(draw: Scored, precision: float) -> float | None:
    """The lowest cut-off at which the draw's own share of right ones is the precision."""
    order = np.argsort(-draw.scores, kind="stable")
    scores = draw.scores[order]
    is_last = np.append(scores[1:] != scores[:-1], True)  # equal scores are accepted together
    share = np.cumsum(draw.hits[order]) / np.arange(1, len(order) + 1)
    passing = np.flatnonzero(is_last & (share >= precision))
    return float(scores[passing[-1]]) if len(passing) else None


WAYS: dict[str, Callable[[Scored, float], float | None]] = {
    "`threshold`": ours,
    "MAPIE, Holm": mapie,
    "MAPIE, fixed sequence": partial(mapie, n_starts=N_STARTS),
    "observed": observed,
}


# Draws


def draws(source: Scored, kind: str, size: int, n_draws: int, seed: int = 0) -> Iterator[tuple[Scored, Scored]]:
    """Yield (a draw of `size` entities, all others of the source); of documents, random ones until they have so many entities."""
    rng, n = np.random.default_rng([seed, size]), len(source.scores)
    _, document_of = np.unique(source.documents, return_inverse=True)
    sizes = np.bincount(document_of)
    for _ in range(n_draws):
        if kind == SINGLE:
            index = sample_entities(document_of, size, seed=int(rng.integers(1 << 32)))
        else:
            order = rng.permutation(len(sizes))
            sample = order[: np.searchsorted(np.cumsum(sizes[order]), size) + 1]
            index = np.flatnonzero(np.isin(document_of, sample))
        yield source.take(index), source.take(np.setdiff1d(np.arange(n), index))


def run_cell(pairs: Sequence[tuple[Scored, Scored]], way: Callable[[Scored, float], float | None], precision: float) -> Outcome:
    """Find a cut-off on each draw, and check it on the other entities."""
    promises, n_held, recall = 0, 0, 0.0
    for sample, remaining in pairs:
        cutoff = way(sample, precision)
        if cutoff is not None:
            is_accepted = remaining.scores >= cutoff
            n_right = int(remaining.hits[is_accepted].sum())
            promises += 1
            n_held += n_right >= precision * is_accepted.sum()
            recall += n_right / remaining.hits.sum()
    return Outcome(promises, n_held, recall / len(pairs))


def add_up(outcomes: Sequence[Outcome]) -> str:
    """Return a cell of the table: the share of all promises that held, the lowest of cells with enough promises, and the share kept."""
    promises, n_held = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("promises", "held"))
    source = [outcome.held / outcome.promises for outcome in outcomes if outcome.promises >= MIN_PROMISES]
    lowest = f"{min(source):.2f}" if source else "-"
    share = f"{n_held / promises:.3f}" if promises else "-"
    return f"{share} of {promises:,}; {lowest}; {np.mean([outcome.kept for outcome in outcomes]):.2f}"


def main(arguments: list[str] | None = None) -> int:
    parser = make_parser(__doc__, SOURCES, cache=True)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--cells", action="store_true", help="print every cell, not sums over sizes and precisions")
    options = parser.parse_args(arguments)
    where = ("source", "draws of", *(("entities", "precision") if options.cells else ()))
    head(f"| {' | '.join([*where, *WAYS])} |", 2)
    for name in options.names:
        source = score_source(SOURCES[name], options.model, options.cache)
        title = f"{name} (silver)" if name in SILVER else name
        for kind in (WHOLE, SINGLE):
            cells = []
            for size in SIZES:
                pairs = list(draws(source, kind, size, options.draws))
                for precision in PRECISIONS:
                    cells.append([run_cell(pairs, way, precision) for way in WAYS.values()])
                    if options.cells:
                        row(title, kind, size, precision, *(add_up([outcome]) for outcome in cells[-1]))
            row(title, kind, *(("all", "all") if options.cells else ()), *(add_up(way) for way in zip(*cells, strict=True)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
