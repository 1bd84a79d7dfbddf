"""The inputs of the log-linear model: for each (token, tag) pair a code and numbers in each block of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints
from .features import TokenScores

# Knots of the piecewise linear functions of the log-odds of a pair, and of its rival.
_KNOTS, _RIVAL_KNOTS = (-3.0, -1.5, 0.0, 1.5, 3.0, 5.0), (-3.0, 0.0, 3.0)
# Numbers per pair: a constant, the log-odds of the pair and of its rival, the entropy of the token, and one per knot.
N_SCORES = 4 + len(_KNOTS) + len(_RIVAL_KNOTS)
# Log-odds range from about -5 to 10. In these units one L2 penalty fits their weights and those of 0/1 inputs.
_UNIT = 4.0
# All knots in these units, and for each the row of `PairInputs.numbers` that it belongs to: log-odds of the pair, or its rival.
_ALL_KNOTS, _ROW_OF_KNOT = np.array([_KNOTS + _RIVAL_KNOTS]).T / _UNIT, np.repeat([1, 2], [len(_KNOTS), len(_RIVAL_KNOTS)])


@dataclass(eq=False)
class TokenView:
    """n tokens with their scores and features, from which the features of spans are computed.

    tokens (TokenScores): Scores before a TokenContext adjusts them. columns (Floats): Standardized features, shape (k, n).
    forms (Ints): Index of each token's form in the vocabulary of the TokenContext, -1 for an unknown form.
    adjusted_scores (Floats): Score of each entry of `tokens` (a token with one of its tags) after a TokenContext.
    """

    tokens: TokenScores
    columns: Floats
    forms: Ints
    adjusted_scores: Floats


# Blocks with a weight per number -> rows of `PairInputs.numbers` ("line": log-odds, constant).
NUMBER_BLOCKS = {"line": slice(1, None, -1), "bends": slice(N_SCORES), "tag": slice(4), "features": slice(N_SCORES, None)}
# Blocks with one weight per code, in the order of `PairInputs.codes` ("before", "behind": tag of the previous, next token).
CODE_BLOCKS = ("rival", "ending", "form", "before", "behind", "shape")


@dataclass(frozen=True)
class WeightBlock:
    """A block of weights of the log-linear model. Each (token, tag) pair has a code, which selects its weights, or no code.

    size (int): Number of codes. width (int): Weights per code. share (float): L2 penalty, as a multiple of the model's.
    """

    name: str
    size: int
    width: int = 1
    share: float = 1.0


@dataclass(eq=False)
class PairInputs:
    """Inputs of the log-linear model for n (token, tag) pairs.

    blocks (Sequence): Blocks of the model. tag_codes (Ints): Twice the tag, plus 1 for the top tag of a token, (n,).
    codes (Ints): Code of each pair in each of CODE_BLOCKS (blocks with one weight per code), (k, n); negative for no code.
    numbers (Floats): Numbers of each pair, such as its log-odds, that weights of NUMBER_BLOCKS are multiplied by, (m, n).
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
            # The size is 1 (one code for all pairs), 2 (top tags, others) or the number of tag codes (each has a code).
            return self.tag_codes % block.size, self.numbers[NUMBER_BLOCKS[block.name]]
        return self.codes[CODE_BLOCKS.index(block.name)], np.broadcast_to(1.0, (1, len(self.tag_codes)))


@lru_cache(maxsize=64)
def blocks_for(n_tags: int, n_forms: int, n_endings: int, n_columns: int) -> tuple[WeightBlock, ...]:
    """Return the model's blocks of weights: for scores and tags, and with a vocabulary also for words and features.

    Their shares of the L2 penalty were chosen by cross-validation on EWT dev and GUM train.
    n_tags (int): Number of tags in the fit. n_forms, n_endings (int): Size of the vocabulary. n_columns (int): Feature columns.
    """
    n = n_tags + 1  # all unknown tags share one more number
    # A line for all pairs; a curve for top tags, and one for others; corrections for each tag, and for each tag with its rival.
    # The factor 2: a tag has other weights where it is the top tag of its token.
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
    """Compute the inputs of the log-linear model for n (token, tag) pairs.

    One input is the rival of the tag: the second tag of the token if the tag is the top one, else the top tag.
    blocks: From `blocks_for`. tokens (TokenScores): Tokens of pairs. columns (Floats): Standardized features, (k, n_tokens).
    word_indices (tuple[Ints, Ints]): Index of each token's form, and of its ending, in the vocabulary; -1 if unknown.
    pairs (tuple): Token, tag, log-odds of each pair, and whether it is the top one of its token. n_tags (int): Tags of the fit.
    """
    token_of_pair, tags, log_odds, is_top = pairs
    rival_rank = is_top.astype(np.intp)  # row of the rival in `top_tags`: 1 (the second tag) for a top tag, else 0
    has_words = len(blocks) > 4  # without a vocabulary `blocks_for` returns four blocks
    # Rows: a constant, log-odds of the pair and of its rival, entropy, knots (N_SCORES rows in all), then features.
    numbers = np.empty((N_SCORES + has_words * len(columns), len(tags)))
    numbers[0], numbers[1] = 1.0, log_odds
    numbers[2] = tokens.top_log_odds[rival_rank, token_of_pair]
    numbers[3] = tokens.entropy[token_of_pair]
    numbers[1:3] /= _UNIT  # so that one L2 penalty suits all weights
    np.maximum(numbers[_ROW_OF_KNOT] - _ALL_KNOTS, 0.0, out=numbers[4:N_SCORES])  # by how much log-odds exceed each knot
    tag_codes = 2 * np.minimum(tags, n_tags) + is_top
    n_code_blocks = len(CODE_BLOCKS) if has_words else 1  # the first is "rival", which needs no words
    codes = _codes_of_tags(n_tags)[:n_code_blocks].take(tag_codes, axis=1)
    codes[0] += _clip_tags(tokens.top_tags[rival_rank, token_of_pair], n_tags)
    if has_words:
        numbers[N_SCORES:] = columns[:, token_of_pair]
        forms, endings = word_indices
        (_, previous_tags), (_, next_tags) = tokens.neighbours
        # One row for each of the other CODE_BLOCKS; a word's code is index * (n_tags + 1) + tag, negative if it is unknown.
        token_codes = np.concatenate((endings, forms, previous_tags, next_tags, tokens.words.shapes)).reshape(5, -1)
        token_codes[:2] *= n_tags + 1
        token_codes[2:4] = _clip_tags(token_codes[2:4], n_tags)
        codes[1:] += token_codes[:, token_of_pair]
    return PairInputs(blocks, tag_codes, codes, numbers)


@lru_cache(maxsize=64)
def _codes_of_tags(n_tags: int) -> Ints:
    """Return the part of a pair's code in each of CODE_BLOCKS that its tag code (2 * tag + is_top) sets, (6, n_tag_codes)."""
    n, tag_codes = n_tags + 1, np.arange(2 * n_tags + 2)
    tags = tag_codes // 2
    # `pair_inputs` adds the rest: the rival's tag, ending * n, form * n, the previous tag, the next tag, the shape.
    return np.stack([tag_codes * n, tags, tags, tags * n, tags * n, 4 * tag_codes])


def _clip_tags(tags: Ints, n_tags: int) -> Ints:
    """Replace -1 (no tag), and tags that were not in the fit, by n_tags, the number of tags in the fit."""
    return np.minimum(tags.view(np.uintp), n_tags).view(np.intp)  # as an unsigned number, -1 is the largest one
