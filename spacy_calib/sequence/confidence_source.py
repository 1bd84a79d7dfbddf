"""Confidences of labellers that know no probabilities, as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..doc.annotations import Annotation
from ..errors import calib_error
from ..pairs.marginals import DenseScores
from ..sources.base import Source
from ..sources.softmax import SoftmaxSource
from ..types import Floats
from .confidence import draw_shares, gaps, k_best_shares
from .draws import head_draws, learner_draws
from .labeller import ChainLabeller
from .online.component import OnlineLabeller
from .source import ChainSource

WAYS = ("kd_pc", "kd_fixed", "kbv", "wkbv", "delta")
# The scales that `choose_scale` tries.
SCALES = tuple(np.geomspace(0.01, 1.0, 20).tolist())


class ConfidenceSource(Source):
    """How much the answer of a labeller moves (Mejer & Crammer 2010, section 5).

    component (str): A sequence model of this package, or for kd_fixed any tagging head over token vectors.
    way (str): kd_pc: draws of the weights from N(mu, s Sigma), which an online learner of variances knows; kd_fixed: from N(mu, s I);
        kbv, wkbv: the k best labellings, alike or by their scores; delta: by how much the best labelling beats the best other one.
    k (int): Draws (50 in the paper) or labellings (30); None for these. scale (float): s. seed (int): Of the draws.
    RAISES C001: a setting out of range.
    """

    reads = ("calib_online",)

    def __init__(
        self, component: str = "calib_online", way: str = "kd_pc", k: int | None = None, scale: float = 0.1, seed: int = 0
    ):
        if way not in WAYS:
            raise calib_error("C001", name="way", wanted=f"one of {', '.join(WAYS)}", given=repr(way))
        if k is not None and k < 1:
            raise calib_error("C001", name="k", wanted="at least 1", given=k)
        if not scale > 0:
            raise calib_error("C001", name="scale", wanted="greater than 0", given=scale)
        self.component, self.way, self.scale, self.seed = component, way, scale, seed
        self.k = k or (30 if way in ("kbv", "wkbv") else 50)

    def supports(self, pipe: Any) -> bool:
        if self.way == "kd_pc":
            return isinstance(pipe, OnlineLabeller)
        return isinstance(pipe, ChainLabeller) or (self.way == "kd_fixed" and SoftmaxSource().supports(pipe))

    def claims(self, pipe: Any) -> bool:
        return isinstance(pipe, OnlineLabeller)

    def kind(self, pipe: Any) -> str:
        return type(pipe).__name__

    def _inner(self, pipe: Any) -> Source:
        return ChainSource(self.component) if isinstance(pipe, ChainLabeller) else SoftmaxSource(self.component)

    def annotation(self, pipe: Any) -> Annotation:
        return self._inner(pipe).annotation(pipe)

    def labels(self, pipe: Any) -> tuple[str, ...]:
        return self._inner(pipe).labels(pipe)

    def is_trained(self, pipe: Any) -> bool:
        return self._inner(pipe).is_trained(pipe)

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return self._inner(pipe).missing(pipe, docs)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        return self._inner(pipe).obstacle(nlp, name, pipe)

    def read(self, pipe: Any, docs: Sequence[Doc]) -> DenseScores:
        given = self.confidences(pipe, docs)
        return DenseScores(np.clip(np.concatenate([np.zeros((0, len(self.labels(pipe)))), *given]), 0.0, 1.0))

    def confidences(self, pipe: Any, docs: Sequence[Doc]) -> list[Floats]:
        """The number of each label at each token, chain after chain, shape (length, K)."""
        ways: dict[str, Callable[[], list[Floats]]] = {
            "kbv": lambda: k_best_shares(pipe.chains(docs)[0], self.k, weighted=False),
            "wkbv": lambda: k_best_shares(pipe.chains(docs)[0], self.k, weighted=True),
            "delta": lambda: gaps(pipe.chains(docs)[0]),
        }
        if self.way in ways:
            return ways[self.way]()
        if isinstance(pipe, OnlineLabeller):
            sequences = [one for doc in docs for one in pipe.features_of(doc, unseen=True)]
            draws = learner_draws(pipe.learner, sequences, self.k, self.scale, self.way == "kd_pc", self.seed)
        else:
            draws = head_draws(pipe, docs, self.k, self.scale, self.seed)
        return draw_shares(list(draws), len(self.labels(pipe)))


def choose_scale(source: ConfidenceSource, pipe: Any, examples: Iterable[Example], scales: Sequence[float] = SCALES) -> float:
    """The scale whose confidences find wrong labels best: the highest average precision, as the paper chooses it on training data.

    examples (Iterable[Example]): Their predicted Docs carry the labels of the component. RAISES C030: no token has gold.
    """
    from sklearn.metrics import average_precision_score

    examples = list(examples)
    annotation, labels = source.annotation(pipe), source.labels(pipe)
    column = {label: i for i, label in enumerate(labels)}
    gold = np.concatenate([annotation.aligned_gold(eg) for eg in examples])
    carried = np.concatenate([annotation.hashes(eg.predicted) for eg in examples])
    own = np.array([column.get(annotation.label(token), -1) for eg in examples for token in eg.predicted], dtype=np.intp)
    judged = np.flatnonzero((gold != 0) & (own >= 0))
    wrong = gold[judged] != carried[judged]
    if not len(judged):
        raise calib_error("C030", layer=annotation.name, component=source.component)
    if not wrong.any() or wrong.all():
        return source.scale
    docs = [eg.predicted for eg in examples]
    found = {}
    for scale in scales:
        tried = ConfidenceSource(source.component, source.way, source.k, scale, source.seed)
        sure = np.concatenate(tried.confidences(pipe, docs))[judged, own[judged]]
        found[scale] = average_precision_score(wrong, 1 - sure)
    return max(found, key=found.__getitem__)


def make_confidence_source(
    component: str = "calib_online", way: str = "kd_pc", k: int | None = None, scale: float = 0.1, seed: int = 0
) -> ConfidenceSource:
    """Registered as spacy-calib.Confidence.v1. See ConfidenceSource."""
    return ConfidenceSource(component, way, k, scale, seed)
