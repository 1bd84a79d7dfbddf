"""Who attacks, and which sentences are right, by hand."""

import numpy as np
import pytest
import spacy
from papers.event_counts import has_both, is_agent, is_described
from papers.event_table import FEATURES, Sentences
from papers.reading import TagScores
from spacy.tokens import Doc

VOCAB = spacy.blank("en").vocab


def parsed(text: str) -> Doc:
    """Words as word/head/relation/lemma."""
    words = [word.split("/") for word in text.split()]
    return Doc(
        VOCAB, words=[word[0] for word in words], heads=[int(word[1]) for word in words], deps=[word[2] for word in words],
        lemmas=[word[3] if len(word) > 3 else word[0].lower() for word in words],
    )  # fmt: skip


def test_agents_and_names():
    doc = parsed("The/1/det forces/4/nsubj of/1/prep Iraq/2/pobj attacked/4/ROOT/attack Kuwait/4/dobj")
    assert [token.text for token in doc if is_agent(token)] == ["forces"]
    assert [token.text for token in doc if is_described(token, frozenset({"iraq"}))] == ["forces", "Iraq"]
    passive = parsed("Kuwait/2/nsubjpass was/2/auxpass attacked/2/ROOT/attack by/2/agent Iraqi/5/amod forces/3/pobj")
    assert is_agent(passive[5])
    assert not is_agent(passive[0])
    assert [token.text for token in passive if is_described(token, frozenset({"iraqi"}))] == ["Iraqi", "forces"]
    other = parsed("Iraq/1/nsubj sells/1/ROOT/sell oil/1/dobj")
    assert not any(map(is_agent, other))


def test_an_entity_attacks_if_one_cluster_has_an_agent_and_a_name():
    # Mentions Iraq, they (attack), we: together, apart, and "they" with "we".
    clusters = np.array([[0, 0, 2], [0, 1, 2], [0, 1, 1]])
    agents, named = np.array([False, True, False]), np.array([True, False, False])
    assert has_both(clusters, agents, named).tolist() == [True, False, False]
    assert not has_both(clusters, agents, np.zeros(3, dtype=bool)).any()


def test_a_sentence_is_right_if_all_its_tags_are():
    gold = Doc(VOCAB, words=list("abcde"), tags=list("XXYXY"), sent_starts=[True, False, True, False, False])
    chances = np.array([[0.9, 0.1], [0.8, 0.2], [0.5, 0.5], [0.6, 0.4], [1.0, 0.0]])
    tags = TagScores.from_predictions(["X", "Y"], chances, list("XXYXX"), [gold])
    found = Sentences.of(tags, [gold])
    assert (found.starts.tolist(), found.hits.tolist(), found.documents.tolist()) == ([0, 2], [True, False], [0, 0])
    scores = chances.max(axis=1)
    assert found.products(scores) == pytest.approx([0.72, 0.3])
    features = dict(zip(FEATURES, found.features(scores).T, strict=True))
    assert features["least"] == pytest.approx(np.log([0.8 / 0.2, 1.0]))
    assert features["second least"] == pytest.approx(np.log([0.9 / 0.1, 0.6 / 0.4]))
    assert features["product"] == pytest.approx(np.log([0.72, 0.3]))
    assert features["1 - product"] == pytest.approx(np.log([0.28, 0.7]))
    assert features["mean"] == pytest.approx(np.log([0.85 / 0.15, 0.7 / 0.3]))
    assert features["words"] == pytest.approx(np.log([2, 3]))
    assert features["doubtful words"].tolist() == [1, 2]
