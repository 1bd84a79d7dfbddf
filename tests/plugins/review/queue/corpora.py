from dataclasses import replace

import numpy as np

from spacy_calib.pairs.scored_corpus import ScoredCorpus
from tests.made import corpus_of

# Two Docs: (word, label, {tag: calibrated score}); raw scores are the squares.
DOCS = [
    [
        [("My", "D", {"D": 0.9}), ("fish", "N", {"N": 0.6, "V": 0.4}), ("swim", "V", {"V": 0.8, "N": 0.1})],
        [("\n", "S", {"S": 0.9}), ("Yes", "I", {"I": 0.5, "N": 0.5})],
    ],
    [[("Ann", "N", {"N": 0.95}), ("can", "V", {"V": 0.3, "N": 0.7}), ("fish", "V", {"V": 0.7, "N": 0.3})]],
]
SPANS = [(1, 0, 1, "PER", 0.8), (0, 1, 3, "ORG", 0.4)]
# 1 right, 0 wrong, -1 not known, of the eight tokens.
RIGHT = [1, 0, 1, -1, -1, 1, 0, 1]


def with_gold(corpus: ScoredCorpus, right: list[int] = RIGHT, spans: tuple[int, ...] = (1, 0)) -> ScoredCorpus:
    """The gold of a wrong token is V."""
    known = np.array(right, dtype=np.int8)
    gold = np.where(known == 1, corpus.labels, np.where(known == 0, corpus.names.index("V"), -1))
    return replace(corpus, right=known, gold=gold, spans=replace(corpus.spans, right=np.array(spans, dtype=np.int8)))


def small() -> ScoredCorpus:
    """DOCS with SPANS and gold."""
    return with_gold(corpus_of(DOCS, SPANS))
