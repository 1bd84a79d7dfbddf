"""A second map, for texts of sources that the fit does not know: it goes half the way from what the fit learned at home to a line through the raw
log-odds, which travels. Knows arrays, never Docs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.proper import log_losses
from ..pairs.build import leading
from ..schema import Saved, flag, floats, kept, maybe, number
from ..types import ANYWHERE, Floats, Ints, Pairs
from .recalibrators import Platt
from .recalibrators.logistic import combine, log_odds, sigmoid
from .steps import Predictions

# Two conventions meet where the model is this sure of a tag and the gold has another: in so many tokens, in such a share of those of which it is so sure,
# and so many times as often as the scores let expect.
_SURE, _FEWEST, _RATE, _TIMES = 0.9, 10, 0.03, 5.0
# A Doc is told from those of the fit by so many standard deviations.
_FAR = 3.0


@dataclass(frozen=True, eq=False)
class Convention:
    """A tag of the model that some gold calls otherwise.

    source (int): Whose gold, -1 for one without a name. said, gold (int): Columns of the model's tag and of the gold's. rows (Ints): The tokens.
    of (int): Tokens of which the model is sure that they have its tag.
    """

    source: int
    said: int
    gold: int
    rows: Ints
    of: int


def find_conventions(pairs: Pairs, gold: Ints, sources: Ints) -> list[Convention]:
    """Where conventions meet, in each source by itself; the most tokens first. gold (Ints): Column of each token's gold tag. sources (Ints): Of the pairs."""
    sure = np.flatnonzero(leading(pairs.rows, pairs.scores) & (pairs.scores >= _SURE))
    found = []
    for source, said in np.unique(np.stack([sources[sure], pairs.tags[sure]]), axis=1).T.tolist():
        own = sure[(sources[sure] == source) & (pairs.tags[sure] == said)]
        rows, expected = pairs.rows[own], float((1.0 - pairs.scores[own]).sum())
        columns, counts = np.unique(gold[rows], return_counts=True)
        for column, n in zip(columns.tolist(), counts.tolist(), strict=True):
            if column not in (said, -1, -2) and n >= max(_FEWEST, _RATE * len(own), _TIMES * expected):
                found.append(Convention(source, said, column, rows[gold[rows] == column], len(own)))
    return sorted(found, key=lambda one: -len(one.rows))


@dataclass(frozen=True)
class UsualWords(Saved):
    """Which share of the words of a Doc is not known, in the Docs of the fit.

    mean (float): Of all tokens. within, between (float): Variance of one token in its Doc, and of the shares of Docs of any length.
    """

    mean: float = kept(number(0.0, 1.0))
    within: float = kept(number(0.0))
    between: float = kept(number(0.0))

    @classmethod
    def of(cls, unknown: NDArray[np.bool_], docs: Ints) -> UsualWords | None:
        """unknown: Of each token, whether its word would not be known had it not stood there. docs (Ints): Its Doc. None of one Doc, or of one-word Docs."""
        _, docs, sizes = np.unique(docs, return_inverse=True, return_counts=True)
        if len(sizes) < 2 or len(docs) == len(sizes):
            return None
        mean, shares = float(unknown.mean()), np.bincount(docs, unknown) / sizes
        within = float((sizes * shares * (1.0 - shares)).sum()) / (len(docs) - len(sizes))
        between = float((sizes * (shares - mean) ** 2).sum() - within * len(sizes)) / len(docs)
        return cls(mean, within, max(0.0, between))

    def exceeded(self, n_unknown: Ints, n: Ints) -> NDArray[np.bool_]:
        """Of Docs with so many unknown words among n, whether they have far more of them than those of the fit."""
        n = np.maximum(n, 1)
        return n_unknown / n - self.mean > _FAR * np.sqrt(self.between + self.within / n)


@dataclass(frozen=True, eq=False)
class Portable(Saved):
    """line (Floats): Slope and constant of the line. abroad (bool): Whether texts that name no source of the fit get this map: sources that were left out
    of a fit lose less with it. usual (UsualWords | None): By which other Docs are told from those of the fit; None where words are not looked at.
    """

    line: Floats = kept(floats())
    abroad: bool = kept(flag)
    usual: UsualWords | None = kept(maybe(UsualWords.read))

    @classmethod
    def fit(
        cls,
        pairs: Pairs,
        conventions: Sequence[Convention],
        sources: Ints,
        elsewhere: Floats | None,
        usual: UsualWords | None,
    ) -> Portable:
        """Learn from pairs with raw scores, those of tokens where conventions meet left out.

        sources (Ints): Of each pair. elsewhere (Floats | None): The score of each pair by a fit that did not see its source; None of one source.
        """
        own = ~np.isin(pairs.rows, np.concatenate([np.zeros(0, dtype=np.intp), *(one.rows for one in conventions)]))
        gained = []
        for source in np.unique(sources) if elsewhere is not None else ():
            others, inside = pairs.take(np.flatnonzero(own & (sources != source))), np.flatnonzero(sources == source)
            left = pairs.take(inside).with_scores(elsewhere[inside])  # type: ignore[index]
            moved = cls(_line(others), False, None).blend(left.scores, pairs.scores[inside])
            gained.append(np.mean(log_losses(left.scores, left.hits) - log_losses(moved, left.hits)))
        return cls(_line(pairs.take(np.flatnonzero(own))), bool(gained and np.mean(gained) > 0), usual)

    def blend(self, home: Floats, raw: Floats) -> Floats:
        """The scores of n entries: by the mean of the log-odds that they have at home and on the line. raw (Floats): Their raw scores."""
        return sigmoid((log_odds(home) + combine(Platt().features(raw), self.line)) / 2)

    def apply(self, given: Predictions) -> Predictions:
        """Entries of Docs that get this map are blended, where it is known what stands in them: it is not while the steps before are being learned."""
        if given.view is None:
            return given
        away = self.away(given.words, given.view.unknown, given.map_for)[given.words.docs]
        scores = given.scores
        if away.any():
            scores = np.where(away[given.rows], self.blend(scores, given.raw), scores)
        return given.having(scores=scores, away=away)

    def away(self, words: Any, unknown: NDArray[np.bool_], map_for: str | None) -> NDArray[np.bool_]:
        """Of each Doc, whether it gets this map, by itself alone: as it is set, else not where it names a source, else as `abroad` says, else where it has far
        more unknown words than those of the fit.

        words: Of its tokens, see Words. unknown: Of each token, whether its word is not known. map_for (str | None): HOME, ANYWHERE, or None for the evidence.
        """
        n = len(words.starts) - 1
        if map_for is not None or self.abroad or self.usual is None:
            away = np.full(n, self.abroad if map_for is None else map_for == ANYWHERE)
        else:
            docs, counted = words.docs, words.counts
            away = self.usual.exceeded(
                np.bincount(docs[counted & unknown], minlength=n), np.bincount(docs[counted], minlength=n)
            )
        named = map_for is None and words.sources is not None
        return away & (words.sources < 0) if named else away

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        return "" if len(held["line"]) == 2 else "two numbers"


def _line(pairs: Pairs) -> Floats:
    """Platt's."""
    fitted = Platt()
    fitted.fit(pairs.scores, pairs.hits)
    return fitted.coefficients_
