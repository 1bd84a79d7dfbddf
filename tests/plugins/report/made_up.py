"""Scored corpora made by hand or at random, and the contents of pages about them."""

from typing import Any

import numpy as np

from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.metrics.judged_view import JudgedView, judged_entities, judged_tokens, never_right
from spacy_calib.metrics.table import calibration_table
from spacy_calib.pairs.scored_corpus import ScoredCorpus, ScoredSpans
from spacy_calib.plugins.report.contents import view_contents
from tests.made import corpus_by_rows as corpus_of

EVIL_WORD = "<img src=x onerror=alert(1)>"
EVIL_TAG = "</script><script>alert(1)</script>"
FACTS = {
    "name": "tagger: tokens", "pipe": "calib", "attr": "calib", "component": "tagger", "layer": "tag", "event": None,
    "counted_on": "train.spacy", "seen": None, "weights_changed": None,
}  # fmt: skip


def random_corpus(n_tags: int, n_tokens: int, seed: int = 0, names: tuple[str, ...] = (), word: str = "") -> ScoredCorpus:
    """Tokens in Docs of 50 and sentences of 10, whose tag is right as often as its calibrated score says; raw scores are too sure.

    The second score of a token is what the first leaves of 1. word (str): Of every seventh token.
    """
    rng = np.random.default_rng(seed)
    given = names or tuple(f"T{i:03}" for i in range(n_tags))
    first = (n_tags * rng.random(n_tokens) ** 2).astype(int)
    second = (first + 1 + rng.integers(0, n_tags - 1, n_tokens)) % n_tags
    score = 0.5 + 0.49 * rng.random(n_tokens)
    gold = np.where(rng.random(n_tokens) < score, first, second)
    tokens = [
        (word if word and i % 7 == 3 else f"w{i}", a, g, [(a, s + (1 - s) * 0.6, s), (b, (1 - s) * 0.4, 1 - s)])
        for i, (a, b, g, s) in enumerate(zip(first.tolist(), second.tolist(), gold.tolist(), score.tolist(), strict=True))
    ]
    return corpus_of(tokens, given, [i // 50 for i in range(n_tokens)], list(range(0, n_tokens, 10)))


def judged_of(corpus: ScoredCorpus, n_groups: int = 2, n_bins: int = 10) -> JudgedView:
    """Its tokens, by groups of the tags' gold frequencies in the corpus itself."""
    counts = {name: int((corpus.gold == i).sum()) for i, name in enumerate(corpus.names)}
    return judged_tokens(corpus, corpus.names, groups=tag_frequency_groups(corpus.names, counts, n_groups), n_bins=n_bins)


def random_entities(n: int, seed: int = 0) -> tuple[ScoredCorpus, JudgedView]:
    """A corpus with n entities of one token each, whose scores are true."""
    rng = np.random.default_rng(seed)
    names = ("PER", "LOC", "O")
    place = np.arange(n) * 3
    labels, scores = rng.integers(0, 2, n), rng.random(n)
    right = (rng.random(n) < scores).astype(np.int8)
    tokens: Any = [(f"w{i}", 2, 2, [(2, 0.9, 0.9)]) for i in range(3 * n)]
    docs = [i // 30 for i in range(3 * n)]
    no_cutoffs = np.full(n, -1, dtype=np.int8)
    spans = ScoredSpans(place // 30, place % 30, place % 30 + 1, labels, np.sqrt(scores), scores, right, no_cutoffs)
    corpus = corpus_of(tokens, names, docs, spans=spans)
    groups = tag_frequency_groups(names[:2], {"PER": 2, "LOC": 1}, 2)
    return corpus, judged_entities(corpus, names[:2], groups=groups)


def view_of(corpus: ScoredCorpus, judged: JudgedView, facts: dict[str, Any]) -> dict[str, Any]:
    """What a page shows of scores, judged as `calib evaluate` does."""
    names = ("pairs", "calibrated", "groups", "n_bins", "seed", "documents", "unit", "metrics")
    table = calibration_table(*(getattr(judged, name) for name in names))
    never = never_right(judged, judged.labels) if judged.has_label_columns else []
    return view_contents(corpus, judged, {**table, "never_right": never}, facts)


def contents_of(*views: dict[str, Any]) -> dict[str, Any]:
    """What a page needs around its views."""
    return {
        "title": "How true?", "model": "en_made_up 1.0", "data": "test.spacy", "made": {"Versions": "spacy 3"},
        "skipped": [], "views": list(views),
    }  # fmt: skip


def evil_contents(n_tokens: int = 4000) -> dict[str, Any]:
    """Two views, in which a word and a tag would be markup and script if they did not stay text."""
    corpus = random_corpus(6, n_tokens, names=(EVIL_TAG, "NN", "VB", "A&B", "X", "Y"), word=EVIL_WORD)
    entities, judged = random_entities(1200)
    facts = {**FACTS, "name": "ner: entities", "component": "ner", "layer": "ner", "event": "exact"}
    return contents_of(view_of(corpus, judged_of(corpus), FACTS), view_of(entities, judged, facts))
