"""What the log-linear model sees of a (token, tag) pair: blocks of features, each a code and perhaps numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..types import Floats, Ints
from .known import KnownWords
from .surroundings import Surroundings
from .words import Words

# Where the lines bend that lead from the log-odds of a score, and of its rival, to the log-odds of a hit.
_BENDS = (-3.0, -1.5, 0.0, 1.5, 3.0, 5.0)
_BENDS_OF_RIVAL = (-3.0, 0.0, 3.0)
# In these blocks each named source of gold has weights of its own beside those of all, with so many times their ridge.
_BY_SOURCE = ("tag", "rival", "ending", "form")
_SHARE_OF_SOURCES = 3.0
# Log-odds reach from -5 to 10 or so: in these units a weight means as much as that of a flag.
_UNIT = 4.0


@dataclass(frozen=True, eq=False)
class Looks:
    """n pairs as the model looks at them.

    tags, rivals (Ints): The tag, and its rival: the second likeliest tag of the token if the tag is the likeliest, else
        the likeliest; n_tags for none, or one that the fit did not know. leads (NDArray): Whether the tag is it.
    own, rival_own (Floats): Log-odds of both scores. rows (Ints): Token of each.
    around (Surroundings): Of all tokens. known (KnownWords | None): None where words are not looked at.
    columns (Sequence[Floats]): The features of all tokens, standardized. n_tags, n_sources (int): How many the fit had.
    """

    tags: Ints
    rivals: Ints
    leads: NDArray[np.bool_]
    own: Floats
    rival_own: Floats
    rows: Ints
    around: Surroundings
    known: KnownWords | None
    columns: Sequence[Floats]
    n_tags: int
    n_sources: int

    @classmethod
    def of(
        cls,
        around: Surroundings,
        known: KnownWords | None,
        columns: Sequence[Floats],
        n_tags: int,
        n_sources: int,
        *,
        rows: Ints,
        tags: Ints,
        own: Floats,
        leads: NDArray[np.bool_],
    ) -> Looks:
        """How the model looks at n pairs. rows, tags (Ints), own (Floats), leads: Of each."""
        rivals = np.where(leads, around.second_tag[rows], around.first_tag[rows])
        rival_own = np.where(leads, around.second[rows], around.first[rows])
        tags, rivals = (np.where((one < 0) | (one > n_tags), n_tags, one) for one in (tags, rivals))
        return cls(tags, rivals, leads, own, rival_own, rows, around, known, columns, n_tags, n_sources)


@dataclass(frozen=True, eq=False)
class Block:
    """A weight for each code, or one for each code and number.

    name (str): Of the weights. of (str): "form" or "ending" where a code joins the place of one and a tag, else "".
    codes (Ints): Of n pairs, in [0, size); -1 where the block says nothing. size (int): How many codes there may be.
    numbers (Sequence[Floats]): What the weights of a code are multiplied with, each of n pairs; () for 1.
    share (float): Of the ridge.
    """

    name: str
    codes: Ints
    size: int
    numbers: Sequence[Floats] = ()
    share: float = 1.0
    of: str = ""

    @property
    def width(self) -> int:
        return max(1, len(self.numbers))


def blocks_of(looks: Looks) -> list[Block]:
    """All blocks of some pairs.

    The shares of the ridge were found by cross-validation on EWT dev and GUM train.
    """
    around, rows, n = looks.around, looks.rows, looks.n_tags + 1
    leads = looks.leads.astype(np.intp)
    tag = 2 * looks.tags + leads
    own, rival, spread = looks.own / _UNIT, looks.rival_own / _UNIT, around.entropy[rows]
    constant = np.ones(len(rows))
    bends = [np.maximum(looks.own - at, 0.0) / _UNIT for at in _BENDS]
    bends += [np.maximum(looks.rival_own - at, 0.0) / _UNIT for at in _BENDS_OF_RIVAL]
    found = [
        Block("line", np.zeros(len(rows), dtype=np.intp), 1, (own, constant), 0.0),
        Block("bends", leads, 2, (constant, own, rival, spread, *bends)),
        Block("tag", tag, 2 * n, (constant, own, rival, spread), 3.0),
        Block("rival", tag * n + looks.rivals, 2 * n * n, share=10.0),
    ]
    if looks.known is None or around.words is None:
        return found
    forms, endings = (place[rows] for place in looks.known.places(around.words))
    beside = around.neighbouring_tags(n - 1)
    found += [
        Block("ending", _joined(endings, looks.tags, n), len(looks.known.endings) * n, of="ending"),
        Block("form", _joined(forms, looks.tags, n), len(looks.known.forms) * n, of="form"),
        Block("before", looks.tags * n + beside[0][rows], n * n, share=10.0),
        Block("behind", looks.tags * n + beside[1][rows], n * n, share=10.0),
        Block("shape", 4 * tag + around.shape[rows], 8 * n, share=3.0),
    ]
    if looks.columns:
        found.append(Block("features", leads, 2, [column[rows] for column in looks.columns], 3.0))
    return [*found, *_of_sources(looks, around.words, found)]


def _of_sources(looks: Looks, words: Words, found: Sequence[Block]) -> list[Block]:
    """How each source of gold differs, in tags and words, from all together. found (Sequence[Block]): Blocks of all."""
    if not looks.n_sources:
        return []
    named = np.full(len(looks.rows), -1) if words.sources is None else words.sources[words.docs[looks.rows]]
    return [
        Block(
            f"{block.name} by source",
            np.where((named < 0) | (block.codes < 0), -1, named * block.size + block.codes),
            looks.n_sources * block.size,
            block.numbers,
            _SHARE_OF_SOURCES * block.share,
            block.of,
        )
        for block in found
        if block.name in _BY_SOURCE
    ]


def _joined(places: Ints, tags: Ints, n: int) -> Ints:
    """One code for the place of a word and a tag; -1 where the word is not known."""
    return np.where(places < 0, -1, places * n + tags)
