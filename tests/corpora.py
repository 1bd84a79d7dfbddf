"""Scored corpora written by hand."""

from __future__ import annotations

import numpy as np

from spacy_calib.pairs.scored_corpus import ScoredCorpus, ScoredSpans

# A token: (word, label, {tag: calibrated score}); the label "" is none, and the raw score is the square of the calibrated one.
Token = tuple[str, str, dict[str, float]]


def corpus_of(docs: list[list[list[Token]]], spans: list[tuple[int, int, int, str, float]] = ()) -> ScoredCorpus:
    """docs: Docs of sentences of tokens. spans: (Doc, first token, the one after the last, label, calibrated score)."""
    rows = [(d, i == 0, *token) for d, doc in enumerate(docs) for sentence in doc for i, token in enumerate(sentence)]
    names = list(
        dict.fromkeys(
            [tag for *_, scores in rows for tag in scores] + [row[3] for row in rows if row[3]] + [span[3] for span in spans]
        )
    )
    number = {name: i for i, name in enumerate(names)} | {"": -1}
    entries = [(i, number[tag], score) for i, (*_, scores) in enumerate(rows) for tag, score in scores.items()]
    own = np.array([scores.get(label, np.nan) for _, _, _, label, scores in rows], dtype=float)
    at, tags, scores = (np.array(column) for column in zip(*entries, strict=True))
    unknown = np.full(len(rows), -1, dtype=np.int8)
    kinds = [np.intp, np.intp, np.intp, np.intp, float, float]
    columns = list(zip(*((d, a, b, number[label], s**2, s) for d, a, b, label, s in spans), strict=True)) or [()] * 6
    return ScoredCorpus(
        names=tuple(names),
        docs=np.array([row[0] for row in rows]),
        n_docs=len(docs),
        words=np.array([*(row[2] for row in rows), None], dtype=object)[:-1],
        spaces=np.ones(len(rows), dtype=bool),
        starts=np.array([row[1] for row in rows]),
        labels=np.array([number[row[3]] for row in rows]),
        raw=own**2,
        calibrated=own,
        gold=np.full(len(rows), -1),
        right=unknown,
        rows=at.astype(np.intp),
        tags=tags.astype(np.intp),
        columns=tags.astype(np.intp),
        tag_raw=scores**2,
        tag_calibrated=scores,
        hits=np.full(len(scores), -1, dtype=np.int8),
        spans=ScoredSpans(
            *(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)),
            right=np.full(len(spans), -1, dtype=np.int8),
            accept=np.full(len(spans), -1, dtype=np.int8),
        ),
    )


def tokens(*scores: float) -> list[Token]:
    """A sentence whose tokens carry A with these scores; the other tag is B."""
    return [(f"w{i}", "A", {"A": score, "B": 1 - score}) for i, score in enumerate(scores)]


# Two Docs of two sentences each, and an empty one between them. White space and a token without a label do not count.
SMALL = [
    [tokens(0.9, 0.6), tokens(0.75)],
    [],
    [[*tokens(0.6, 0.6), ("\n", "A", {"A": 0.1}), ("x", "", {"B": 0.5})], [(" ", "A", {"A": 0.2})]],
]
