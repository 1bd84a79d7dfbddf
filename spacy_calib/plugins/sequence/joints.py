"""Joint probabilities of neighbouring tokens' labels (for `TagCalibrator` too), and samples of whole labellings of a Doc."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from ...doc.attributes import DEFAULT_ATTR
from ...doc.view import DocCalib, doc_view
from ...pairs.build import check_threshold
from ...sources.base import to_numpy
from ...types import Floats, Ints, Marginals
from ..events.draws import draw_columns, make_rng, scale_to_one
from ..events.sampling import LabelDraws
from .inference.chains import fit_joints
from .inference.sums import ChainSums, sum_chains
from .labeller import ChainLabeller
from .messages import calib_error
from .source import ChainSource
from .targets import ENTITIES, get_target

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# How many probabilities are computed together.
_CELLS = 1 << 22
# How many Docs are scored together.
_DOCS = 64


def pair_names(labeller: ChainLabeller) -> list[str]:
    """Return "DET NOUN" of each pair of labels, in the order of the columns of `pair_scores`."""
    return [f"{first} {second}" for first in labeller.labels for second in labeller.labels]


def pair_scores(labeller: ChainLabeller, docs: Iterable[Doc], threshold: float = 0.01) -> csr_matrix:
    """Return P(labels of a token and of the next one | text) by forward-backward, of all tokens of some Docs.

    labeller (ChainLabeller): Of a pipeline; what it listens to has run over the Docs. threshold (float): Lower probabilities
    are left out. RETURNS (csr_matrix): A row for each token (empty for the last of a chain), a column for each name of
    `pair_names`. RAISES C342: the component has no probabilities. C001: threshold out of range. C322: scores are NaN. C323: no
    labelling is allowed.

    >>> import spacy
    >>> from spacy.tokens import Doc
    >>> from spacy.training import Example
    >>> nlp = spacy.blank("en")
    >>> hmm = nlp.add_pipe("calib_hmm")
    >>> gold = Doc(nlp.vocab, words=["they", "fish"], tags=["PRON", "VERB"])
    >>> _ = nlp.initialize(lambda: [Example(nlp.make_doc("they fish"), gold)])
    >>> pair_names(hmm)
    ['PRON PRON', 'PRON VERB', 'VERB PRON', 'VERB VERB']
    >>> pair_scores(hmm, [nlp.make_doc("they fish")])[0].toarray().round(2).tolist()
    [[0.1, 0.78, 0.02, 0.1]]
    """
    from scipy.sparse import csr_matrix, vstack

    if not ChainSource().claims(labeller):
        raise calib_error("C342", name=getattr(labeller, "name", "?"), kind=type(labeller).__name__)
    check_threshold(threshold)
    docs, width = list(docs), len(labeller.labels) ** 2
    parts = [csr_matrix((0, width))]
    for first in range(0, len(docs), _DOCS):
        batch = docs[first : first + _DOCS]
        marginals = joint_marginals(sum_chains(labeller.chains(batch)[0]), threshold)
        parts.append(csr_matrix((marginals.scores, (marginals.rows, marginals.tags)), shape=(sum(map(len, batch)), width)))
    return vstack(parts, format="csr")


def gold_pairs(labeller: ChainLabeller, examples: Iterable[Example]) -> list[str | None]:
    """Return the gold pair of each predicted token and the next; None at the end of a chain or without gold."""
    target = get_target(labeller.cfg["target"])
    names_by_token: list[str | None] = []
    for example in examples:
        gold = target.gold(example)
        names: list[str | None] = [None] * len(gold)
        for start, end in labeller.bounds(example.predicted):
            names[start : end - 1] = [
                f"{first} {second}" if first and second else None
                for first, second in zip(gold[start : end - 1], gold[start + 1 : end], strict=True)
            ]
        names_by_token += names
    return names_by_token


def each_joint(sums: ChainSums) -> Iterator[tuple[Ints, Floats]]:
    """Yield (first tokens, P(labels of each and of the next), shape (n, K, K)), n tokens at a time, in order."""
    chains = sums.chains
    previous, following = chains.packing.neighbours
    order = np.argsort(chains.packing.flat_index[previous], kind="stable")
    size = max(1, _CELLS // max(1, chains.n_labels**2))
    for first in range(0, len(order), size):
        part = order[first : first + size]
        yield chains.packing.flat_index[previous[part]], to_numpy(sums.joint(previous[part], following[part]))


def joint_marginals(sums: ChainSums, threshold: float = 0.01) -> Marginals:
    """Return P(labels of tokens i and i + 1 | text) for all chains, as entries of row i; tags are first label * K + second
    label.

    threshold (float): In (0, 1]. RETURNS (Marginals): n_tokens - 1 rows; that of the last token of a chain is empty.
    """
    parts: list[Any] = [(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0))]
    for tokens, joint in each_joint(sums):
        flat = joint.reshape(len(tokens), -1)
        row, code = np.nonzero(flat >= threshold)
        parts.append((tokens[row], code, flat[row, code]))
    rows, codes, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    n_rows = max(0, int(sums.chains.packing.lengths.sum()) - 1)
    return Marginals(rows, codes, np.minimum(scores, 1.0), n_rows)


def sample_jointly(labeller: ChainLabeller, doc: Doc, n: int = 100, seed: int = 0, attr: str = DEFAULT_ATTR) -> LabelDraws:
    """Sample n labellings of a Doc from the distribution nearest to the model's own whose marginals are the calibrated scores.

    labeller (ChainLabeller): A calib_crf, calib_hmm or calib_crfsuite; what it listens to has run over the Doc. doc (Doc):
    Scored by a calib pipe that reads this component. attr (str): Prefix of that pipe. What the scores of a token lack to 1 goes
    to labels below the threshold, by the model's shares; a token without scores keeps the model's marginals. RAISES C001: n or
    seed. C342: the component has no probabilities. C412: the calib pipe does not read it. C413: no scores. C416: entities.
    """
    source = ChainSource()
    if not source.claims(labeller):
        raise calib_error("C342", name=getattr(labeller, "name", "?"), kind=type(labeller).__name__)
    if labeller.cfg["target"] == ENTITIES:
        raise calib_error("C416", name=labeller.name, attr=attr)
    layer, rng = source.annotation(labeller).name, make_rng(n, seed, get_string_id(doc.text))
    if not len(doc):  # has no scores either
        empty = np.zeros((n, 0), dtype=np.intp)
        return LabelDraws(doc, np.zeros(0), layer, labeller.labels, empty, np.zeros(0, dtype=bool))
    view = doc_view(doc, attr)
    if view is None:
        raise calib_error("C413", text=doc.text[:40].strip(), attr=attr)
    if view.layer != layer:
        raise calib_error("C412", name=labeller.name, layer=view.layer, own=layer, attr=attr)
    sums = sum_chains(labeller.chains([doc])[0])
    marginals = np.concatenate([*map(to_numpy, sums.by_sequence())])
    target, scale = calibrated_marginals(view, labeller.labels, marginals)
    codes, marginals_reached = draw_chain(sums, target, rng.random((n, len(doc))))
    gap = float(np.abs(marginals_reached - target).max())
    return LabelDraws(doc, scale, view.layer, labeller.labels, codes, np.ones(len(doc), dtype=bool), gap)


def calibrated_marginals(view: DocCalib, labels: tuple[str, ...], raw: Floats) -> tuple[Floats, Floats]:
    """Return (probabilities of labels at each token, rows of sum 1; the factor of each token's calibrated scores).

    raw (Floats): The model's own, shape (n_tokens, K), by which labels below the threshold share the rest to 1.
    """
    column = {label: i for i, label in enumerate(labels)}
    codes = np.array([column.get(tag, -1) for tag in view.tags], dtype=np.intp)
    is_known = codes >= 0
    target, other_scores = np.zeros_like(raw), raw.copy()
    target[view.rows[is_known], codes[is_known]] = view.calibrated[is_known]
    other_scores[view.rows[is_known], codes[is_known]] = 0.0
    scale = scale_to_one(target.sum(axis=1))
    target *= scale[:, None]
    missing_mass, other_mass = 1.0 - target.sum(axis=1), other_scores.sum(axis=1)
    target += other_scores * np.divide(missing_mass, other_mass, out=np.zeros_like(missing_mass), where=other_mass > 0)[:, None]
    total = target.sum(axis=1)  # less than 1 where the scores have all labels
    empty = total <= 0
    target[empty], total[empty] = raw[empty], raw[empty].sum(axis=1)
    return target / total[:, None], scale / np.where(empty, 1.0, total)


class ChainDraws(NamedTuple):
    """Samples of labels. codes (Ints): Shape (n, n_tokens). marginals (Floats): Their probabilities, shape (n_tokens, K)."""

    codes: Ints
    marginals: Floats


def draw_chain(sums: ChainSums, target: Floats, uniforms: NDArray[np.float64]) -> ChainDraws:
    """Sample labels from left to right. target: Marginals of tokens, (n_tokens, K). uniforms: In [0, 1), (n, n_tokens)."""
    n, n_tokens = uniforms.shape
    codes, marginals = np.zeros((n, n_tokens), dtype=np.intp), target.copy()
    starts = set(np.cumsum([0, *sums.chains.packing.lengths.tolist()])[:-1].tolist())
    for token in starts:
        codes[:, token] = draw_columns(np.broadcast_to(target[token], (n, target.shape[1])), uniforms[:, token])
    for tokens, joints in each_joint(sums):
        kernels = fit_joints(joints, target[tokens], target[tokens + 1])
        for token, kernel in zip(tokens.tolist(), kernels, strict=True):
            marginals[token + 1] = marginals[token] @ kernel
            codes[:, token + 1] = draw_columns(kernel[codes[:, token]], uniforms[:, token + 1])
    return ChainDraws(codes, marginals)
