"""The inputs of the log-linear model: for each (token, tag) pair a code and numbers in each block of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints
from .features import TokenScores

# Knots of the piecewise linear functions of the log-odds of a score, and of its rival.
_BENDS, _RIVAL_BENDS = (-3.0, -1.5, 0.0, 1.5, 3.0, 5.0), (-3.0, 0.0, 3.0)
# Numbers per pair: a constant, the log-odds of the pair and of its rival, the entropy of the token, and the knots.
N_SCORES = 4 + len(_BENDS) + len(_RIVAL_BENDS)
# Log-odds range from about -5 to 10. In these units one L2 penalty fits their weights and those of 0/1 inputs.
_UNIT = 4.0
# The knots in these units, and the row of numbers that each one bends: 1 the log-odds, 2 those of the rival.
_ALL_BENDS, _BENT = np.array([_BENDS + _RIVAL_BENDS]).T / _UNIT, np.array([1] * len(_BENDS) + [2] * len(_RIVAL_BENDS))


@dataclass(eq=False)
class TokenView:
    """n tokens with their scores and features, from which the context step of spans computes the features of spans.

    tokens (TokenScores): Scores of the tokens before the context. columns (Floats): Standardized features, shape (k, n).
    forms (Ints): Index of each token's form in the vocabulary of the context, -1 for an unknown form.
    adjusted_scores (Floats): Score of each entry of `tokens` (a token with a tag) after the context.
    """

    tokens: TokenScores
    columns: Floats
    forms: Ints
    adjusted_scores: Floats


# Blocks with a weight per number -> rows of `PairInputs.numbers` ("line": log-odds, constant). The code is the tag code modulo
# the size of the block.
NUMBER_BLOCKS = {"line": slice(1, None, -1), "bends": slice(N_SCORES), "tag": slice(4), "features": slice(N_SCORES, None)}
# Blocks with one weight per code, in the order of `PairInputs.codes`.
CODE_BLOCKS = ("rival", "ending", "form", "before", "behind", "shape")


@dataclass(frozen=True)
class WeightBlock:
    """A block of weights: each pair has one code in it, or none. size (int): Number of codes. width (int): Weights per code.

    share (float): The L2 penalty of the block, as a multiple of the ridge.
    """

    name: str
    size: int
    width: int = 1
    share: float = 1.0


@dataclass(eq=False)
class PairInputs:
    """Inputs of the log-linear model for n (token, tag) pairs.

    blocks (Sequence[WeightBlock]): Blocks of the model.
    tag_codes (Ints): Twice the tag, plus 1 where it is the top tag of its token, shape (n,). codes (Ints): Code of each pair in
        each block of CODE_BLOCKS, shape (k, n); negative where the block has none for it.
    numbers (Floats): Inputs of the blocks in NUMBER_BLOCKS, shape (m, n).
    """

    blocks: Sequence[WeightBlock]
    tag_codes: Ints
    codes: Ints
    numbers: Floats

    def take(self, index: Ints | slice) -> PairInputs:
        return PairInputs(self.blocks, self.tag_codes[index], self.codes[:, index], self.numbers[:, index])

    def inputs_of(self, block: WeightBlock) -> tuple[Ints, Floats]:
        """Return the code of each pair in a block, (n,), and the numbers that its weights are multiplied by, (width, n)."""
        if block.name in NUMBER_BLOCKS:
            # A size of 1: one code for all pairs; of 2: one for top tags and one for others; else the tag code itself.
            return self.tag_codes % block.size, self.numbers[NUMBER_BLOCKS[block.name]]
        return self.codes[CODE_BLOCKS.index(block.name)], np.broadcast_to(1.0, (1, len(self.tag_codes)))


@lru_cache(maxsize=64)
def blocks_for(n_tags: int, n_forms: int, n_endings: int, n_columns: int) -> tuple[WeightBlock, ...]:
    """Return the model's blocks of weights: for scores and tags, and with a vocabulary also for words and features.

    Their shares of the ridge were chosen by cross-validation on EWT dev and GUM train.
    n_tags (int): Number of tags; one more code stands for all others. n_forms, n_endings (int): Size of the vocabulary.
    n_columns (int): Number of feature columns.
    """
    n = n_tags + 1
    # A factor of 2: a tag has other weights where it is the top tag of its token.
    score_blocks = (
        WeightBlock("line", 1, width=2, share=0.0), WeightBlock("bends", 2, width=N_SCORES),
        WeightBlock("tag", 2 * n, width=4, share=3.0), WeightBlock("rival", 2 * n * n, share=10.0),
    )  # fmt: skip
    if not n_endings:  # no vocabulary: the model reads only scores
        return score_blocks
    word_blocks = (
        WeightBlock("ending", n_endings * n), WeightBlock("form", n_forms * n),
        WeightBlock("before", n * n, share=10.0), WeightBlock("behind", n * n, share=10.0),
        WeightBlock("shape", 8 * n, share=3.0),  # 4 shapes of words for each of 2 * n tag codes
    )  # fmt: skip
    features = (WeightBlock("features", 2, width=n_columns, share=3.0),) if n_columns else ()
    return (*score_blocks, *word_blocks, *features)


def pair_inputs(
    blocks: Sequence[WeightBlock],
    tokens: TokenScores,
    word_indices: tuple[Ints, Ints],
    columns: Floats,
    pairs: tuple[Ints, Ints, Floats, NDArray[np.bool_]],
    n_tags: int,
) -> PairInputs:
    """Compute the inputs of n pairs.

    The rival of a top tag is the second tag of its token; the rival of any other tag is the top tag.

    blocks (Sequence[WeightBlock]): From `blocks_for`. tokens (TokenScores): Tokens of the pairs.
    word_indices (tuple[Ints, Ints]): Index of each token's form, and of its ending, in the vocabulary; -1 if unknown.
    columns (Floats): Standardized features, shape (k, n_tokens).
    pairs (tuple): Token, tag, log-odds of each pair, and whether it is the top one of its token. n_tags (int): Tags of the fit.
    """
    rows, tags, log_odds, is_top = pairs
    # `rival` is the index of a pair's rival among the two highest entries of its token. Without words there are four blocks.
    n, rival, has_words = n_tags + 1, is_top.astype(np.intp), len(blocks) > 4
    # Rows: a constant, log-odds of the pair and of its rival, entropy, knots (N_SCORES rows in all), then features.
    numbers = np.empty((N_SCORES + has_words * len(columns), len(rows)))
    numbers[0], numbers[1], numbers[2], numbers[3] = 1.0, log_odds, tokens.top_log_odds[rival, rows], tokens.entropy[rows]
    numbers[1:3] /= _UNIT
    np.maximum(numbers[_BENT] - _ALL_BENDS, 0.0, out=numbers[4:N_SCORES])
    tag_codes = 2 * np.minimum(tags, n_tags) + is_top
    codes = _codes_of_tags(n_tags)[: len(CODE_BLOCKS) if has_words else 1].take(tag_codes, axis=1)
    codes[0] += _clip_tags(tokens.top_tags[rival, rows], n_tags)  # the first of CODE_BLOCKS is "rival"
    if has_words:
        numbers[N_SCORES:] = columns[:, rows]
        (forms, endings), (previous, following) = word_indices, tokens.neighbours
        # One row for each of the other CODE_BLOCKS; the code of a word is index * n + tag, and stays negative if it is unknown.
        token_codes = np.concatenate((endings, forms, previous[1], following[1], tokens.words.shapes)).reshape(5, -1)
        token_codes[:2] *= n
        token_codes[2:4] = _clip_tags(token_codes[2:4], n_tags)
        codes[1:] += token_codes[:, rows]
    return PairInputs(blocks, tag_codes, codes, numbers)


@lru_cache(maxsize=64)
def _codes_of_tags(n_tags: int) -> Ints:
    """Return the part of a pair's code that depends on its tag code, in each block of CODE_BLOCKS, (6, number of tag codes)."""
    n, tag_codes = n_tags + 1, np.arange(2 * n_tags + 2)  # tag code: 2 * tag + is_top
    tags = tag_codes // 2
    # `pair_inputs` adds the other part: the rival's tag, ending * n, form * n, the previous tag, the next tag, the shape.
    return np.stack([tag_codes * n, tags, tags, tags * n, tags * n, 4 * tag_codes])


def _clip_tags(tags: Ints, n_tags: int) -> Ints:
    """Replace -1 and tags that are unknown to the fit by n_tags."""
    return np.minimum(tags.view(np.uintp), n_tags).view(np.intp)  # unsigned, -1 is the largest number
