"""A second map, for texts of sources unknown to the fit: halfway from the map at home to a line through the raw
log-odds. Knows arrays, never Docs.
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

# Conventions differ where the model is this sure of a tag and the gold has another: for so many tokens, for such a
# share of those of which it is so sure, so many times as often as the scores let expect, and in such a share of the
# cases where the gold disagrees. Errors go many ways, and another name is one.
_SURE, _FEWEST, _RATE, _TIMES, _ONE_WAY = 0.9, 10, 0.03, 5.0, 0.5
# A Doc is unlike those of the fit by so many standard deviations.
_FAR = 3.0


@dataclass(frozen=True, eq=False)
class Convention:
    """A tag of the model that some gold names otherwise.

    source (int): Whose gold, -1 for one without a name. said, gold (int): Columns of both tags. rows: Tokens.
    of (int): How many tokens the model is sure to have its tag.
    """

    source: int
    said: int
    gold: int
    rows: Ints
    of: int

    def told(self, labels: Sequence[str], sources: Sequence[str] = ()) -> dict[str, Any]:
        """In names: "source" ("" for one without), "said" and "gold", and "tokens" "of" so many.

        labels, sources (Sequence[str]): Names of the columns, and of sources of gold.
        """
        source = "" if self.source < 0 else sources[self.source]
        return {
            "source": source, "said": labels[self.said], "gold": labels[self.gold], "tokens": len(self.rows), "of": self.of,
        }  # fmt: skip


def find_conventions(pairs: Pairs, gold: Ints, sources: Ints) -> list[Convention]:
    """Where conventions differ, source by source; most tokens first. gold: Of each token. sources: Of each pair."""
    sure = np.flatnonzero(leading(pairs.rows, pairs.scores) & (pairs.scores >= _SURE))
    found = []
    for source, said in np.unique(np.stack([sources[sure], pairs.tags[sure]]), axis=1).T.tolist():
        own = sure[(sources[sure] == source) & (pairs.tags[sure] == said)]
        rows, expected = pairs.rows[own], float((1.0 - pairs.scores[own]).sum())
        columns, counts = np.unique(gold[rows], return_counts=True)
        least = max(_FEWEST, _RATE * len(own), _TIMES * expected, _ONE_WAY * counts[(columns != said) & (columns != -2)].sum())
        for column, n in zip(columns.tolist(), counts.tolist(), strict=True):
            if column not in (said, -1, -2) and n >= least:
                found.append(Convention(source, said, column, rows[gold[rows] == column], len(own)))
    return sorted(found, key=lambda one: -len(one.rows))


@dataclass(frozen=True)
class UsualWords(Saved):
    """Which share of the words of a Doc was unknown, in the Docs of the fit.

    mean (float): Over all tokens. within, between (float): Variance of a token in its Doc, and of the shares of Docs.
    """

    mean: float = kept(number(0.0, 1.0))
    within: float = kept(number(0.0))
    between: float = kept(number(0.0))

    @classmethod
    def of(cls, unknown: NDArray[np.bool_], docs: Ints) -> UsualWords | None:
        """unknown: Whether each token's word would be unknown but for it. docs (Ints): Its Doc. None if too few."""
        _, docs, sizes = np.unique(docs, return_inverse=True, return_counts=True)
        if len(sizes) < 2 or len(docs) == len(sizes):
            return None
        mean, shares = float(unknown.mean()), np.bincount(docs, unknown) / sizes
        within = float((sizes * shares * (1.0 - shares)).sum()) / (len(docs) - len(sizes))
        between = float((sizes * (shares - mean) ** 2).sum() - within * len(sizes)) / len(docs)
        return cls(mean, within, max(0.0, between))

    def exceeded(self, n_unknown: Ints, n: Ints) -> NDArray[np.bool_]:
        """Whether Docs with so many unknown words among n have far more of them than those of the fit."""
        n = np.maximum(n, 1)
        return n_unknown / n - self.mean > _FAR * np.sqrt(self.between + self.within / n)


@dataclass(frozen=True, eq=False)
class Portable(Saved):
    """line (Floats): Slope and constant. abroad (bool): Whether texts without a source of the fit get this map, which
    helped on sources left out. usual (UsualWords | None): Tells other Docs; None where words are not looked at.
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
        """Learn from pairs with raw scores, without the tokens where conventions differ.

        sources (Ints): Of each pair. elsewhere (Floats | None): Score of each pair by a fit without its source, if any.
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
        """The mean of two log-odds, at home and on the line, as scores. raw (Floats): Raw scores of the entries."""
        return sigmoid((log_odds(home) + combine(Platt().features(raw), self.line)) / 2)

    def apply(self, given: Predictions) -> Predictions:
        """Blend entries of Docs that get this map; without a view (while earlier steps are being learned) nothing."""
        if given.view is None:
            return given
        away = self.away(given.words, given.view.unknown, given.map_for)[given.words.docs]
        scores = given.scores
        if away.any():
            scores = np.where(away[given.rows], self.blend(scores, given.raw), scores)
        return given.having(scores=scores, away=away)

    def away(self, words: Any, unknown: NDArray[np.bool_], map_for: str | None) -> NDArray[np.bool_]:
        """Whether each Doc gets this map: as set; else not if it names a source; else by `abroad`; else where it has
        far more unknown words than those of the fit.

        words (Words): Of its tokens. unknown: Of each token. map_for (str | None): HOME, ANYWHERE, or None: not set.
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
    """The line of Platt scaling."""
    fitted = Platt()
    fitted.fit(pairs.scores, pairs.hits)
    return fitted.coefficients_
