"""Labels of all tokens of a Doc drawn together: calibrated scores as marginals, neighbours as in the model's chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ..doc.attributes import DEFAULT_ATTR, DocCalib, doc_view
from ..doc.sampling import LabelDraws
from ..errors import calib_error
from ..expect.draws import generator, within_one
from ..sources.base import to_numpy
from ..types import Floats, Ints
from .inference.chains import fit_joints
from .inference.sums import Sums, sum_chains
from .joints import each_joint
from .labeller import ChainLabeller
from .source import ChainSource
from .targets import ENTITIES


def sample_jointly(labeller: ChainLabeller, doc: Doc, n: int = 100, seed: int = 0, attr: str = DEFAULT_ATTR) -> LabelDraws:
    """n labellings of a Doc from the distribution nearest to the model's own whose marginals are the calibrated scores.

    labeller (ChainLabeller): A calib_crf, calib_hmm or calib_crfsuite; what it listens to has run over the Doc.
    doc (Doc): Scored by a calib pipe that reads this component. attr (str): Prefix of that pipe.
    What the scores of a token lack to 1 goes to labels below the threshold, as the model shares it among them; a token
    without scores keeps the model's own marginals.
    RAISES C001: n or seed. C342: the component gives no probabilities. C412: the calib pipe does not read it. C413: no
        scores. C416: entities.
    """
    source = ChainSource()
    if not source.claims(labeller):
        raise calib_error("C342", name=getattr(labeller, "name", "?"), kind=type(labeller).__name__)
    if labeller.cfg["target"] == ENTITIES:
        raise calib_error("C416", name=labeller.name, attr=attr)
    own, rng = source.annotation(labeller).name, generator(n, seed, get_string_id(doc.text))
    if not len(doc):  # has no scores either
        none = np.zeros((n, 0), dtype=np.intp)
        return LabelDraws(doc, np.zeros(0), own, labeller.labels, none, np.zeros(0, dtype=bool))
    view = doc_view(doc, attr)
    if view is None:
        raise calib_error("C413", text=doc.text[:40].strip(), attr=attr)
    if view.layer != own:
        raise calib_error("C412", name=labeller.name, layer=view.layer, own=own, attr=attr)
    sums = sum_chains(labeller.chains([doc])[0])
    marginals = np.concatenate([*map(to_numpy, sums.by_sequence())])
    wanted, scale = calibrated_marginals(view, labeller.labels, marginals)
    codes, reached = draw_chain(sums, wanted, rng.random((n, len(doc))))
    gap = float(np.abs(reached - wanted).max())
    return LabelDraws(doc, scale, view.layer, labeller.labels, codes, np.ones(len(doc), dtype=bool), gap)


def calibrated_marginals(view: DocCalib, labels: tuple[str, ...], raw: Floats) -> tuple[Floats, Floats]:
    """(probabilities of labels at each token, rows of sum 1; what each token's calibrated scores were multiplied with).

    raw (Floats): The model's own, shape (n_tokens, K), by which labels below the threshold share what scores lack to 1.
    """
    column = {label: i for i, label in enumerate(labels)}
    codes = np.array([column.get(tag, -1) for tag in view.tags], dtype=np.intp)
    known = codes >= 0
    wanted, below = np.zeros_like(raw), raw.copy()
    wanted[view.rows[known], codes[known]] = view.calibrated[known]
    below[view.rows[known], codes[known]] = 0.0
    scale = within_one(wanted.sum(axis=1))
    wanted *= scale[:, None]
    left, unshared = 1.0 - wanted.sum(axis=1), below.sum(axis=1)
    wanted += below * np.divide(left, unshared, out=np.zeros_like(left), where=unshared > 0)[:, None]
    total = wanted.sum(axis=1)  # less than 1 where the scores have all labels
    empty = total <= 0
    wanted[empty], total[empty] = raw[empty], raw[empty].sum(axis=1)
    return wanted / total[:, None], scale / np.where(empty, 1.0, total)


class ChainDraws(NamedTuple):
    """codes (Ints): Label of each token in each draw, (n, n_tokens). reached: Their marginals, (n_tokens, K)."""

    codes: Ints
    reached: Floats


def draw_chain(sums: Sums, wanted: Floats, chances: NDArray[np.float64]) -> ChainDraws:
    """Draw labels from left to right. wanted: Marginals of tokens, (n_tokens, K). chances: Uniform, (n, n_tokens)."""
    n, n_tokens = chances.shape
    codes, reached = np.zeros((n, n_tokens), dtype=np.intp), wanted.copy()
    starts = set(np.cumsum([0, *sums.chains.packing.lengths.tolist()])[:-1].tolist())
    for token in starts:
        codes[:, token] = _drawn(np.broadcast_to(wanted[token], (n, wanted.shape[1])), chances[:, token])
    for tokens, joints in each_joint(sums):
        kernels = fit_joints(joints, wanted[tokens], wanted[tokens + 1])
        for token, kernel in zip(tokens.tolist(), kernels, strict=True):
            reached[token + 1] = reached[token] @ kernel
            codes[:, token + 1] = _drawn(kernel[codes[:, token]], chances[:, token + 1])
    return ChainDraws(codes, reached)


def _drawn(shares: Floats, chances: Floats) -> Ints:
    """Draw a column for each row. shares (Floats): Rows of sum 1, shape (n, K). chances (Floats): Uniform, (n,)."""
    sums = np.cumsum(shares, axis=1)
    found: Ints = (sums <= (chances * sums[:, -1])[:, None]).sum(axis=1)
    return np.minimum(found, shares.shape[1] - 1)
