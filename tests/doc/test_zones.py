"""Zones of spaCy's memory: words are let go, what was read stays."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import spacy

from spacy_calib.doc import zones
from spacy_calib.doc.zones import in_zones, memory_zone, pipe_in_zones, zone_size

TEXTS = [f"the dog{i} sees a duck{i}x" for i in range(60)]


@pytest.fixture
def blank():
    nlp = spacy.blank("en")
    nlp.batch_size = 8
    return nlp


@pytest.fixture
def small(monkeypatch):
    """Zones of 8 texts, from the first one on."""
    monkeypatch.setattr(zones, "LEARNED_FROM", 0)
    monkeypatch.setattr(zones, "IN_ZONE", 8)


def words(nlp):
    return lambda texts: [[token.text for token in nlp.make_doc(text)] for text in texts]


def test_what_was_read_stays_and_the_words_go(blank, small):
    wanted = [text.split() for text in TEXTS]
    blank("the sees a")
    before = len(blank.vocab.strings)
    parts = list(in_zones(blank, iter(TEXTS), words(blank)))
    assert [len(part) for part in parts] == [8] * 7 + [4]
    assert [one for part in parts for one in part] == wanted
    assert len(blank.vocab.strings) == before
    list(in_zones(blank, TEXTS, words(blank), whole=True))
    assert len(blank.vocab.strings) > before + 60


@pytest.mark.parametrize("in_zone", [None, 24])
def test_docs_of_a_zone_are_there_until_the_next_one(blank, small, in_zone):
    """Of the numbered words, no more than a zone's are known at any time."""
    seen, known = [], set()
    for doc, number in pipe_in_zones(blank, ((text, i) for i, text in enumerate(TEXTS)), in_zone=in_zone):
        assert doc.text == TEXTS[number]
        seen.append(number)
        known.add(sum(f"dog{i}" in blank.vocab.strings for i in range(60)))
    assert seen == list(range(60))
    assert max(known) == (in_zone or 8)


def test_the_first_texts_teach_the_tokenizer(blank, monkeypatch):
    monkeypatch.setattr(zones, "IN_ZONE", 8)
    monkeypatch.setattr(zones, "LEARNED_FROM", 16)
    list(in_zones(blank, TEXTS, words(blank)))
    kept = [i for i in range(60) if f"dog{i}" in blank.vocab.strings]
    assert kept == list(range(16))


def test_zones_are_whole_batches(blank):
    assert zone_size(blank) == 1000
    blank.batch_size = 256
    assert zone_size(blank) == 768
    blank.batch_size = 5000
    assert zone_size(blank) == 5000
    assert zone_size(blank, n_process=2) == 80_000


def test_nothing_at_all_is_read_once(blank):
    assert list(in_zones(blank, [], list)) == [[]]


@contextmanager
def _careless(nlp):
    """As spaCy's own zone was up to 3.8.7: an exception leaves it open."""
    yield from _entered(nlp.vocab)


def _entered(vocab):
    zone = vocab.memory_zone()
    zone.__enter__()
    yield
    zone.__exit__(None, None, None)


@pytest.mark.parametrize("careless", [False, True])
def test_an_exception_leaves_the_pipeline_as_it_was(blank, small, monkeypatch, careless):
    if careless:
        monkeypatch.setattr(blank, "memory_zone", lambda: _careless(blank), raising=False)
    before = len(blank.vocab.strings)

    def fail(texts):
        for number, text in enumerate(texts):
            blank.make_doc(text)
            if number == 3:
                raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        list(in_zones(blank, TEXTS, fail))
    assert not blank.vocab.in_memory_zone
    assert len(blank.vocab.strings) == before
    assert [token.text for token in blank("dog1 and dog77")] == ["dog1", "and", "dog77"]


def test_no_zone_begins_inside_of_another(blank):
    with blank.memory_zone():
        with memory_zone(blank):
            doc = blank("dog78")
        assert doc[0].text == "dog78"


@pytest.mark.parametrize("version", ["3.7.5", "3.8.2"])
def test_older_versions_read_the_same_without_zones(blank, small, monkeypatch, version):
    monkeypatch.setattr(spacy, "__version__", version)
    assert sum(in_zones(blank, TEXTS, words(blank)), []) == [text.split() for text in TEXTS]
    assert "dog59" in blank.vocab.strings


def test_lemmas_of_rules_are_let_go(blank, monkeypatch):
    lemmatizer = blank.add_pipe("lemmatizer", config={"mode": "lookup"})
    monkeypatch.setattr(zones, "_MAX_LEMMAS", 3)
    with memory_zone(blank):
        lemmatizer.cache.update({i: ["x"] for i in range(3)})
    assert len(lemmatizer.cache) == 3
    with memory_zone(blank):
        lemmatizer.cache[3] = ["x"]
    assert not lemmatizer.cache
