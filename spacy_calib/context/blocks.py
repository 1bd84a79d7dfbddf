"""What the log-linear model looks at: for each (token, tag) pair a code and numbers in each block of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints
from .features import TokenScores

# Where the piecewise linear functions of the log-odds of a score, and of its rival, bend.
_BENDS, _RIVAL_BENDS = (-3.0, -1.5, 0.0, 1.5, 3.0, 5.0), (-3.0, 0.0, 3.0)
# Numbers of scores: a constant, the log-odds of the pair and of its rival, the entropy of the token, and the bends.
N_SCORES = 4 + len(_BENDS) + len(_RIVAL_BENDS)
# Log-odds reach from -5 to 10 or so: in these units a weight means as much as that of a flag.
_UNIT = 4.0
_ALL_BENDS, _BENT = np.array([_BENDS + _RIVAL_BENDS]).T / _UNIT, np.array([1] * len(_BENDS) + [2] * len(_RIVAL_BENDS))


@dataclass(eq=False)
class View:
    """Tokens as the context of their spans looks at them.

    tokens (TokenScores): Their scores before the context. columns (Floats): Standardized features, shape (k, n_tokens).
    forms (Ints): The place of each token's form among the known ones, -1 for unknown ones. adjusted (Floats): The score of each entry after the context.
    """

    tokens: TokenScores
    columns: Floats
    forms: Ints
    adjusted: Floats


# The blocks with a weight for each number: which rows of `PairInputs.numbers` these are. Their code is the tag code modulo their size.
NUMBERS = {"line": slice(1, None, -1), "bends": slice(N_SCORES), "tag": slice(4), "features": slice(N_SCORES, None)}
# The blocks with one weight for each code, in the order of `PairInputs.codes`.
SINGLE = ("rival", "ending", "form", "before", "behind", "shape")


@dataclass(frozen=True)
class Block:
    """The weights of one name. size (int): Number of codes. width (int): Weights of each. share (float): Of the ridge.

    words (str): "form" or "ending" where a code is the place of one and a tag; "" for others.
    """

    name: str
    size: int
    width: int = 1
    share: float = 1.0
    words: str = ""


@dataclass(eq=False)
class PairInputs:
    """What the model looks at in n pairs.

    blocks (Sequence[Block]): Of the model. tag_codes (Ints): Twice the tag, plus 1 where it is the top one of its token.
    codes (Ints): The code in each block of SINGLE, shape (k, n); below 0 where the block says nothing about the pair.
    numbers (Floats): Shape (m, n).
    """

    blocks: Sequence[Block]
    tag_codes: Ints
    codes: Ints
    numbers: Floats

    def take(self, index: Ints | slice) -> PairInputs:
        """Some of the pairs."""
        return PairInputs(self.blocks, self.tag_codes[index], self.codes[:, index], self.numbers[:, index])

    def of_block(self, block: Block) -> tuple[Ints, Floats]:
        """(the code of each pair in a block; the numbers that the weights of the block are multiplied by, shape (width, n))."""
        if block.name in NUMBERS:
            return self.tag_codes % block.size, self.numbers[NUMBERS[block.name]]
        return self.codes[SINGLE.index(block.name)], np.broadcast_to(1.0, (1, len(self.tag_codes)))


@lru_cache(maxsize=64)
def blocks_for(n_tags: int, n_forms: int, n_endings: int, n_columns: int) -> tuple[Block, ...]:
    """All blocks of a fit. The shares of the ridge were found by cross-validation on EWT dev and GUM train.

    n_tags (int): Tags of the fit; one more number stands for all others. n_forms, n_endings (int): Known words. n_columns (int): Of features.
    """
    n = n_tags + 1
    of_scores = (
        Block("line", 1, 2, 0.0),
        Block("bends", 2, N_SCORES),
        Block("tag", 2 * n, 4, 3.0),
        Block("rival", 2 * n * n, share=10.0),
    )
    if not n_endings:
        return of_scores
    of_words = (
        Block("ending", n_endings * n, words="ending"),
        Block("form", n_forms * n, words="form"),
        Block("before", n * n, share=10.0),
        Block("behind", n * n, share=10.0),
        Block("shape", 8 * n, share=3.0),
    )
    return (*of_scores, *of_words, Block("features", 2, n_columns, 3.0)) if n_columns else (*of_scores, *of_words)


def pair_inputs(
    blocks: Sequence[Block],
    tokens: TokenScores,
    places: tuple[Ints, Ints],
    columns: Floats,
    pairs: tuple[Ints, Ints, Floats, NDArray[np.bool_]],
    n_tags: int,
) -> PairInputs:
    """What the model looks at in n pairs.

    The rival of a pair is the second tag of its token where its own tag is the top one, else the top one.
    blocks (Sequence[Block]): From `blocks_for`. tokens (TokenScores): Their tokens. places (tuple[Ints, Ints]): The place of each token's form
    among the known ones, and that of its ending; -1 for unknown ones. columns (Floats): Standardized features, shape (k, n_tokens).
    pairs: Token, tag and log-odds of each pair, and whether it is the highest of its token. n_tags (int): Of the fit.
    """
    rows, tags, log_odds, is_top = pairs
    n, top, has_words = n_tags + 1, is_top.astype(np.intp), len(blocks) > 4
    numbers = np.empty((N_SCORES + has_words * len(columns), len(rows)))
    numbers[0], numbers[1], numbers[2], numbers[3] = 1.0, log_odds, tokens.top_log_odds[top, rows], tokens.entropy[rows]
    numbers[1:3] /= _UNIT
    np.maximum(numbers[_BENT] - _ALL_BENDS, 0.0, out=numbers[4:N_SCORES])
    tag_codes = 2 * np.minimum(tags, n_tags) + top
    codes = _codes_of_tags(n_tags)[: 6 if has_words else 1].take(tag_codes, axis=1)
    codes[0] += _limited(tokens.top_tags[top, rows], n_tags)
    if has_words:
        numbers[N_SCORES:] = columns[:, rows]
        (forms, endings), (before, after) = places, tokens.neighbours
        parts = np.concatenate((endings, forms, before[1], after[1], tokens.words.shapes)).reshape(5, -1)
        parts[:2] *= n
        parts[2:4] = _limited(parts[2:4], n_tags)
        codes[1:] += parts[:, rows]
    return PairInputs(blocks, tag_codes, codes, numbers)


@lru_cache(maxsize=64)
def _codes_of_tags(n_tags: int) -> Ints:
    """What each tag code adds to the code in each block of SINGLE, shape (6, tag codes)."""
    n, tag_codes = n_tags + 1, np.arange(2 * n_tags + 2)
    tags = tag_codes // 2
    return np.stack([tag_codes * n, tags, tags, tags * n, tags * n, 4 * tag_codes])


def _limited(tags: Ints, n_tags: int) -> Ints:
    """The tags, with n_tags in place of -1 and of tags that the fit did not know."""
    return np.minimum(tags.view(np.uintp), n_tags).view(np.intp)  # unsigned, -1 is the largest number
