"""Two consecutive tokens' tags by the joint marginals of a sequence model, beside the product of their marginals, as the same events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from analysis.tag_pairs import product_pairs
from corpus_pairs import no_places, places_of
from scipy.sparse import csr_matrix, kron
from spacy.tokens import Doc

from spacy_calib import TagCalibrator
from spacy_calib.corpus.scored import UNKNOWN, ScoredCorpus
from spacy_calib.sequence.joints import pair_scores
from spacy_calib.sequence.labeller import ChainLabeller
from spacy_calib.sequence.source import by_type, entity_types
from spacy_calib.sequence.targets import ENTITIES
from spacy_calib.types import OUTSIDE, Floats, Ints, Pairs

LEAST = 1e-6  # joint probabilities below it count as much


@dataclass(frozen=True, eq=False)
class ChainPairs:
    """Pairs of tags of consecutive tokens whose joint or product reaches the threshold.

    names (tuple[str, ...]): "DT NN" of each code. pairs (Pairs): Rows are first tokens, tags codes, scores joint marginals.
    product, of_calibrated (Floats): Products of the raw marginals, and of the calibrated ones. documents (Ints): Of each pair.
    gold (list[str | None]), of_token (Ints): The gold pair of each token and the next one, and the document of each token.
    """

    names: tuple[str, ...]
    pairs: Pairs
    product: Floats
    of_calibrated: Floats
    documents: Ints
    gold: list[str | None]
    of_token: Ints

    def matrix(self, scores: Floats) -> csr_matrix:
        """Scores of the pairs as TagCalibrator takes them, a row for each token."""
        shape = (len(self.of_token), len(self.names))
        return csr_matrix((np.maximum(scores, LEAST), (self.pairs.rows, self.pairs.tags)), shape=shape)

    def calibrated(self, made: TagCalibrator, scores: Floats) -> Floats:
        """What a calibrator makes of scores of these pairs."""
        return np.asarray(made.transform(self.matrix(scores))[self.pairs.rows, self.pairs.tags]).ravel()

    def calibrator(self, scores: Floats) -> TagCalibrator:
        """Isotonic regression with five groups of pairs by frequency, learned from scores of these pairs."""
        made = TagCalibrator(method="isotonic", threshold=LEAST, classes=list(self.names))
        return made.fit(self.matrix(scores), self.gold, groups=self.of_token)


def chain_pairs(corpus: ScoredCorpus, labeller: ChainLabeller, docs: Iterable[Doc], threshold: float = 0.01) -> ChainPairs:
    """Both scores of the same pairs. corpus (ScoredCorpus): With gold, of these Docs; docs as the labeller reads them.

    RAISES CalibError: there is no place with gold and scores.
    """
    judged = corpus.pairs()
    places, n = places_of(corpus), max(1, len(corpus.names))
    singles = replace(judged.pairs, tags=corpus.tags[corpus.hits != UNKNOWN])
    every = product_pairs(singles, places, n, LEAST)
    labels, joint = joint_of_labels(labeller, docs)
    column = {label: i for i, label in enumerate(labels)}
    own = np.array([column.get(name, -1) for name in corpus.names], dtype=np.intp)
    first, second = own[np.stack(np.divmod(every.pairs.tags, n))]
    found = np.clip(np.asarray(joint[every.pairs.rows, first * len(labels) + second]).ravel(), LEAST, 1.0)
    product = every.pairs.scores
    kept = np.flatnonzero((found >= threshold) | (product >= threshold))
    if not len(kept):
        raise no_places(threshold)
    pairs = Pairs(every.pairs.rows, first * len(labels) + second, found, every.pairs.hits, every.pairs.n_units).take(kept)
    gold: list[str | None] = [None] * len(corpus)
    for i in np.flatnonzero(places).tolist():
        gold[i] = f"{corpus.names[corpus.gold[i]]} {corpus.names[corpus.gold[i + 1]]}"
    return ChainPairs(
        tuple(f"{a} {b}" for a in labels for b in labels), pairs, product[kept], every.of(judged.calibrated)[kept],
        judged.documents[every.first][kept], gold, corpus.documents,
    )  # fmt: skip


def joint_of_labels(labeller: ChainLabeller, docs: Iterable[Doc]) -> tuple[tuple[str, ...], csr_matrix]:
    """(tags or entity types, P of them at a token and the next one): of entities the sum over BILUO tags."""
    scores = pair_scores(labeller, docs, LEAST)
    if labeller.cfg["target"] != ENTITIES:
        return labeller.labels, scores
    member = by_type(np.eye(len(labeller.labels)), labeller.labels)
    types = (OUTSIDE, *entity_types(labeller.labels))
    return types, csr_matrix(scores @ csr_matrix(kron(csr_matrix(member), csr_matrix(member))))
