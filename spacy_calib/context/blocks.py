"""What the log-linear model sees of a (token, tag) pair: blocks of features, each a code and perhaps numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints
from .surroundings import Surroundings
from .words import KnownWords

# Where the lines bend that lead from the log-odds of a score, and of its rival, to those that it is right.
_BENDS = np.array([[-3.0], [-1.5], [0.0], [1.5], [3.0], [5.0]])
_BENDS_OF_RIVAL = np.array([[-3.0], [0.0], [3.0]])
# What is looked at of scores: a constant, the log-odds of the pair and of its rival, the entropy of the token, and the bends.
_LINES = 4 + len(_BENDS) + len(_BENDS_OF_RIVAL)
# Log-odds reach from -5 to 10 or so: in these units a weight means as much as that of a flag.
_UNIT = 4.0


@dataclass(frozen=True, eq=False)
class View:
    """Some tokens as the features see them.

    around (Surroundings): What they look at. columns (Floats): What they say, standardized, shape (features, tokens).
    known (KnownWords): Forms and endings that have weights. forms, endings (Ints): The place among these of each token's; -1 for one that is not known.
    moved (Floats): The score of each entry of `around` by the model that looks at them; as it was where none does.
    """

    around: Surroundings
    columns: Floats
    known: KnownWords
    forms: Ints
    endings: Ints
    moved: Floats

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Of each token, whether its form is not known."""
        return self.forms < 0


@dataclass(frozen=True, eq=False)
class Block:
    """A weight for each code, or one for each code and number.

    name (str): Of the weights. of (str): "form" or "ending" where a code is the place of one and a tag; "" for others. codes (Ints): Of n pairs, in [0, size); -1 where the block says nothing of a pair. size (int): How many there may be.
    numbers (Floats | None): What the weights of a code are multiplied with, shape (width, n); None for 1. share (float): Of the ridge.
    """

    name: str
    codes: Ints
    size: int
    numbers: Floats | None = None
    share: float = 1.0
    of: str = ""

    @property
    def width(self) -> int:
        return 1 if self.numbers is None else len(self.numbers)


def blocks_of(view: View, rows: Ints, tags: Ints, own: Floats, leads: NDArray[np.bool_], n_tags: int) -> list[Block]:
    """All blocks of n pairs.

    The rival of a pair is the second likeliest tag of its token where its tag is the likeliest one, else the likeliest.
    The shares of the ridge were found by cross-validation on EWT dev and GUM train.

    view (View): Of all tokens. rows, tags (Ints): Token and tag of each pair. own (Floats): The log-odds of its score.
    leads (NDArray): Whether it is its token's likeliest tag. n_tags (int): Tags of the fit; one that it did not know
        has the number n_tags.
    """
    around, n, leading, tags = view.around, n_tags + 1, leads.astype(np.intp), np.minimum(tags, n_tags)
    rivals = np.where(leads, around.second_tag[rows], around.first_tag[rows])
    rivals = np.where((rivals < 0) | (rivals > n_tags), n_tags, rivals)
    tag, rival = 2 * tags + leading, np.where(leads, around.second[rows], around.first[rows])
    numbers = np.empty((_LINES + len(view.columns), len(rows)))
    numbers[0], numbers[1], numbers[2], numbers[3] = 1.0, own / _UNIT, rival / _UNIT, around.entropy[rows]
    numbers[4 : 4 + len(_BENDS)] = np.maximum(own - _BENDS, 0.0) / _UNIT
    numbers[4 + len(_BENDS) : _LINES] = np.maximum(rival - _BENDS_OF_RIVAL, 0.0) / _UNIT
    found = [
        Block("line", np.zeros(len(rows), dtype=np.intp), 1, numbers[1::-1], 0.0),
        Block("bends", leading, 2, numbers[:_LINES]),
        Block("tag", tag, 2 * n, numbers[:4], 3.0),
        Block("rival", tag * n + rivals, 2 * n * n, share=10.0),
    ]
    if not len(view.known.endings) or around.words is None:
        return found
    of_tag, (before, behind) = tags * n, around.neighbouring_tags(n - 1)
    # One code of the place of a word and a tag; -1 where the word is not known.
    ending, form = (np.where(place < 0, -1, place * n + tags) for place in (view.endings[rows], view.forms[rows]))
    found += [
        Block("ending", ending, len(view.known.endings) * n, of="ending"),
        Block("form", form, len(view.known.forms) * n, of="form"),
        Block("before", of_tag + before[rows], n * n, share=10.0),
        Block("behind", of_tag + behind[rows], n * n, share=10.0),
        Block("shape", 4 * tag + around.shape[rows], 8 * n, share=3.0),
    ]
    if len(view.columns):
        numbers[_LINES:] = view.columns[:, rows]
        found.append(Block("features", leading, 2, numbers[_LINES:], 3.0))
    return found
