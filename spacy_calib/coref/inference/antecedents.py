"""Which earlier mention each mention refers to: independent distributions (Nguyen & O'Connor 2015, definition 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...calibration.conditional_logit import softmax
from ...errors import calib_error
from ...types import ROUNDING, Floats, Ints

# No antecedent: the mention begins a new cluster.
NEW = -1


@dataclass(frozen=True, eq=False)
class Candidates:
    """The earlier mentions that each mention may choose as its antecedent. RAISES C355: a wrong order.

    starts (Ints): Where the candidates of each of the n mentions begin, and the end of the last, shape (n + 1,).
    earlier (Ints): The candidates, ascending within a mention, each less than the mention itself.
    """

    starts: Ints
    earlier: Ints

    def __post_init__(self) -> None:
        if (
            len(self.starts) < 1
            or self.starts[0] != 0
            or self.starts[-1] != len(self.earlier)
            or (np.diff(self.starts) < 0).any()
        ):
            raise calib_error("C355", why="the starts of their candidates do not rise from 0 to the end of the last")
        late = self.mentions
        if len(late) and (self.earlier.min() < 0 or (self.earlier >= late).any()):
            raise calib_error("C355", why="an antecedent has to stand before its mention")
        if ((np.diff(self.earlier) <= 0) & (np.diff(late) == 0)).any():
            raise calib_error("C355", why="the candidates of a mention have to rise")

    def __len__(self) -> int:
        """How many mentions there are."""
        return len(self.starts) - 1

    @property
    def mentions(self) -> Ints:
        """The mention of each candidate."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @property
    def options(self) -> Ints:
        """Where each mention's options begin, with NEW before the candidates; shape (n + 1,)."""
        return self.starts + np.arange(len(self.starts))

    def of(self, mention: int) -> Ints:
        return self.earlier[self.starts[mention] : self.starts[mention + 1]]


@dataclass(frozen=True, eq=False)
class Antecedents:
    """P(a_j) of each mention j of a document, in the order of the text.

    candidates (Candidates): Whom each may choose. chances (Floats): P(a_j = k) of each candidate; the rest is of NEW.
    RAISES C355: no probabilities, or not one for each candidate.
    """

    candidates: Candidates
    chances: Floats

    def __post_init__(self) -> None:
        if self.chances.shape != self.candidates.earlier.shape:
            raise calib_error("C355", why=f"{len(self.candidates.earlier)} candidates have {self.chances.size} probabilities")
        sums = np.bincount(self.candidates.mentions, weights=self.chances, minlength=len(self.candidates))
        # NaN fails this too
        if len(self.chances) and not (self.chances.min() >= 0 and sums.max() <= 1 + ROUNDING):
            raise calib_error("C355", why="the chances of the candidates of a mention are not in [0, 1], or sum to more than 1")

    def __len__(self) -> int:
        """How many mentions there are."""
        return len(self.candidates)

    @classmethod
    def from_scores(cls, scores: Floats, candidates: Candidates) -> Antecedents:
        """The softmax of each mention's scores. scores (Floats): Of all options, see `Candidates.options`."""
        chances = softmax(scores, candidates.options)
        keep = np.ones(len(scores), dtype=bool)
        keep[candidates.options[:-1]] = False
        return cls(candidates, chances[keep])

    def of(self, mention: int) -> tuple[Ints, Floats]:
        """(the candidates of a mention, their chances)."""
        own = slice(self.candidates.starts[mention], self.candidates.starts[mention + 1])
        return self.candidates.earlier[own], self.chances[own]

    def best(self) -> Ints:
        """The likeliest antecedent of each mention, NEW where none is likelier than that."""
        found = np.full(len(self), NEW)
        for mention in range(len(self)):
            earlier, chances = self.of(mention)
            if len(chances) and chances.max() > max(0.0, 1.0 - chances.sum()):
                found[mention] = earlier[chances.argmax()]
        return found

    def sample(self, n: int, seed: int) -> Ints:
        """Independent clusterings: first mention of each one's cluster, (n, n_mentions). RAISES C001: n is negative."""
        if n < 0:
            raise calib_error("C001", name="n", wanted="0 or more", given=n)
        return self.drawn(np.random.default_rng(seed).random((len(self), n)).T)

    def drawn(self, numbers: Floats) -> Ints:
        """`sample` with given random numbers in [0, 1), one for each clustering and mention."""
        n = len(numbers)
        labels = np.tile(np.arange(len(self)), (n, 1))
        every = np.arange(n)
        for mention in range(len(self)):
            earlier, chances = self.of(mention)
            drawn = np.searchsorted(np.cumsum(chances), numbers[:, mention], side="right")
            linked = drawn < len(earlier)
            labels[linked, mention] = labels[every[linked], earlier[drawn[linked]]]
        return labels


def first_mentions(antecedents: Ints) -> Ints:
    """The first mention of each mention's cluster. antecedents (Ints): Of each mention, NEW for none."""
    first = np.arange(len(antecedents))
    for mention, earlier in enumerate(antecedents.tolist()):
        if earlier != NEW:
            first[mention] = first[earlier]
    return first


# Weight of the distance from the model's chances, beside 1 for pair probabilities: it decides between antecedents in
# one cluster. Weight of the distance of a mention's sum from 1, which is made exact in the end.
_HOLD, _WHOLE = 0.01, 100.0


def refit(antecedents: Antecedents, wanted: Floats) -> Antecedents:
    """Chances of the same candidates that give the wanted pair probabilities, or come near them.

    Mention by mention, P(j ~ i) = sum over k of P(a_j = k) P(k ~ i) is linear in the chances of j, so non-negative
    least squares find them. Some arrays of pair probabilities belong to no distribution of clusterings, whose P(a ~ c)
    is at least P(a ~ b) + P(b ~ c) - 1. wanted (Floats): P(i ~ j), symmetric, shape (n, n).
    """
    from scipy.optimize import nnls

    n = len(antecedents)
    together, chances = np.eye(n), antecedents.chances.copy()
    for late in range(1, n):
        earlier, raw = antecedents.of(late)
        if not len(earlier):
            continue
        options = np.append(raw, max(0.0, 1.0 - raw.sum()))  # NEW is the last
        pairs = np.column_stack([together[earlier, :late].T, np.zeros(late)])
        table = np.vstack([pairs, _HOLD * np.eye(len(options)), np.full(len(options), _WHOLE)])
        found = nnls(table, np.concatenate([wanted[late, :late], _HOLD * options, [_WHOLE]]))[0]
        own = found[:-1] / found.sum()
        chances[antecedents.candidates.starts[late] : antecedents.candidates.starts[late + 1]] = own
        together[late, :late] = together[:late, late] = np.minimum(own @ together[earlier, :late], 1.0)
    return Antecedents(antecedents.candidates, chances)
