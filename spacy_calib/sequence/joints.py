"""Joint probabilities of the labels of two neighbouring tokens, which are calibrated like any others.

`spacy_calib.TagCalibrator` takes `pair_scores` and `gold_pairs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import calib_error
from ..pairs.build import check_threshold
from ..sources.base import to_numpy
from ..types import Floats, Ints, Marginals
from .inference.sums import Sums, sum_chains
from .labeller import ChainLabeller
from .source import ChainSource
from .targets import get_target

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# How many probabilities are made together.
_CELLS = 1 << 22
# How many Docs.
_DOCS = 64


def pair_names(labeller: ChainLabeller) -> list[str]:
    """ "DET NOUN" of each pair of labels, in the order of the columns of `pair_scores`."""
    return [f"{first} {second}" for first in labeller.labels for second in labeller.labels]


def pair_scores(labeller: ChainLabeller, docs: Iterable[Doc], threshold: float = 0.01) -> csr_matrix:
    """P(labels of a token and of the next one | text) by forward-backward, of all tokens of some Docs.

    labeller (ChainLabeller): Of a pipeline; what it listens to has run over the Docs.
    threshold (float): Lower probabilities are left out.
    RETURNS (csr_matrix): A row for each token (empty for the last of a chain), a column for each name of `pair_names`.
    RAISES C342: the component gives no probabilities. C001: threshold out of range. C322, C323: as ChainLabeller.
    """
    from scipy.sparse import csr_matrix, vstack

    if not ChainSource().claims(labeller):
        raise calib_error("C342", name=getattr(labeller, "name", "?"), kind=type(labeller).__name__)
    check_threshold(threshold)
    docs, width = list(docs), len(labeller.labels) ** 2
    parts = [csr_matrix((0, width))]
    for first in range(0, len(docs), _DOCS):
        own = docs[first : first + _DOCS]
        found = joint_marginals(sum_chains(labeller.chains(own)[0]), threshold)
        parts.append(csr_matrix((found.scores, (found.rows, found.tags)), shape=(sum(map(len, own)), width)))
    return vstack(parts, format="csr")


def gold_pairs(labeller: ChainLabeller, examples: Iterable[Example]) -> list[str | None]:
    """The name of the gold pair of each predicted token and the next; None at the end of a chain or without gold."""
    target = get_target(labeller.cfg["target"])
    found: list[str | None] = []
    for example in examples:
        gold = target.gold(example)
        names: list[str | None] = [None] * len(gold)
        for start, end in labeller.bounds(example.predicted):
            names[start : end - 1] = [
                f"{first} {second}" if first and second else None
                for first, second in zip(gold[start : end - 1], gold[start + 1 : end], strict=True)
            ]
        found += names
    return found


def each_joint(sums: Sums) -> Iterator[tuple[Ints, Floats]]:
    """(first tokens, P(labels of each and of the next), shape (n, K, K)), n places at a time, in order."""
    chains = sums.chains
    before, after = chains.packing.followed
    order = np.argsort(chains.packing.flat[before], kind="stable")
    size = max(1, _CELLS // max(1, chains.n_labels**2))
    for first in range(0, len(order), size):
        own = order[first : first + size]
        yield chains.packing.flat[before[own]], to_numpy(sums.joint(before[own], after[own]))


def joint_marginals(sums: Sums, threshold: float = 0.01) -> Marginals:
    """P(labels of tokens i and i + 1 | text) for the tokens of all chains, one after the other, as entries of row i.

    Their tags are codes, first label * K + second label. The last row of a chain has none.
    threshold (float): In (0, 1]. RETURNS (Marginals): Of n_tokens - 1 places (`places_inside` tells which count).
    """
    found: list[Any] = [(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0))]
    for tokens, joint in each_joint(sums):
        flat = joint.reshape(len(tokens), -1)
        place, code = np.nonzero(flat >= threshold)
        found.append((tokens[place], code, flat[place, code]))
    rows, codes, scores = (np.concatenate(part) for part in zip(*found, strict=True))
    n_places = max(0, int(sums.chains.packing.lengths.sum()) - 1)
    return Marginals(rows, codes, np.minimum(scores, 1.0), n_places)


def places_inside(lengths: Ints) -> np.ndarray:
    """Whether tokens i and i + 1 stand in one chain, shape (n_tokens - 1,). lengths (Ints): Of the chains."""
    inside = np.ones(max(0, int(lengths.sum()) - 1), dtype=bool)
    inside[np.cumsum(lengths)[:-1] - 1] = False
    return inside
