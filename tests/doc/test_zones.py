"""Zones of spaCy's memory: words are freed, what was read stays."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import spacy
from spacy.training import Example
from spacy.util import is_compatible_version

from spacy_calib.cli.shared import examples as examples_module
from spacy_calib.cli.shared.examples import RunSettings, read_through
from spacy_calib.doc.zones import _ZONE_VERSIONS, memory_zone
from tests.forked import in_own_process

TEXTS = [f"the dog{i} sees a duck{i}x" for i in range(60)]
needs_zones = pytest.mark.skipif(
    not is_compatible_version(spacy.__version__, _ZONE_VERSIONS), reason="this spaCy has no memory zones that can be used"
)


@pytest.fixture
def blank():
    nlp = spacy.blank("en")
    nlp.batch_size = 8
    return nlp


def words_read(nlp, texts: Iterable[str], gold: bool = False, n_process: int = 1):
    """The words of the texts in batches, by the code that all commands use."""
    examples = (Example(nlp.make_doc(text), nlp.make_doc(text)) for text in texts)

    def read(batch):
        return [[token.text for token in example.predicted] for example in batch]

    return list(read_through(nlp, examples, [], read, RunSettings(n_process, gold=gold)))


@needs_zones
def test_what_was_read_stays_and_the_words_are_freed(blank, monkeypatch):
    monkeypatch.setattr(examples_module, "TEXTS_PER_ZONE", 20)
    blank("the sees a")
    before = len(blank.vocab.strings)
    parts = words_read(blank, iter(TEXTS))
    assert [len(part) for part in parts] == [16, 16, 16, 12]  # whole batches
    assert sum(parts, []) == [text.split() for text in TEXTS]
    assert len(blank.vocab.strings) == before
    assert words_read(blank, TEXTS, gold=True) == [[text.split() for text in TEXTS]]
    assert len(blank.vocab.strings) >= before + 120


def test_nothing_at_all_is_no_batch(blank):
    assert words_read(blank, []) == []


@contextmanager
def _careless(nlp):
    """As spaCy's own zone was up to 3.8.7: an exception leaves it open."""
    zone = nlp.vocab.memory_zone()
    zone.__enter__()
    yield
    zone.__exit__(None, None, None)


@needs_zones
@pytest.mark.parametrize("careless", [False, True])
@in_own_process
def test_an_exception_leaves_the_pipeline_as_it_was(blank, monkeypatch, careless):
    if careless:
        monkeypatch.setattr(blank, "memory_zone", lambda: _careless(blank))
    before = len(blank.vocab.strings)

    def fail() -> None:
        blank.make_doc("dog1 and dog77")
        raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"), memory_zone(blank):
        fail()
    assert not blank.vocab.in_memory_zone
    assert len(blank.vocab.strings) == before
    assert [token.text for token in blank("dog1 and dog77")] == ["dog1", "and", "dog77"]


@needs_zones
def test_no_zone_begins_inside_of_another(blank):
    with blank.memory_zone():
        with memory_zone(blank):
            doc = blank("dog78")
        assert doc[0].text == "dog78"


def test_docs_from_before_a_zone_stay_as_they_are(blank):
    doc = blank("an old dog79")
    with memory_zone(blank):
        assert blank("an old dog79 and dog80")[2].orth == doc[2].orth
    assert [token.text for token in doc] == ["an", "old", "dog79"]
    assert [token.lower_ for token in blank("dog79 dog80")] == ["dog79", "dog80"]


def test_threads_that_share_a_pipeline_read_their_own_words(blank):
    """A zone that one thread ends would free the words that another reads."""

    def read(number: int) -> bool:
        text = " ".join(f"w{number}x{i}" for i in range(50))
        with memory_zone(blank):
            return [token.text for token in blank(text)] == text.split()

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(read, range(400)))
    assert not is_compatible_version(spacy.__version__, _ZONE_VERSIONS) or "w399x49" not in blank.vocab.strings


@pytest.mark.parametrize("version", ["3.7.5", "3.8.2"])
@in_own_process
def test_older_versions_read_the_same_without_zones(blank, monkeypatch, version):
    monkeypatch.setattr(spacy, "__version__", version)
    assert sum(words_read(blank, TEXTS), []) == [text.split() for text in TEXTS]
    assert "dog59" in blank.vocab.strings
