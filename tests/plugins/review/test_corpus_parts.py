"""Parts of scored corpora, and what is kept of those that come one after the other."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.plugins.review import digest_counts as distinct
from spacy_calib.plugins.review import stored as stored_module
from spacy_calib.plugins.review.corpus_parts import TOKEN_COLUMNS, UsefulDocs, join_corpora, number_docs, select_docs
from spacy_calib.plugins.review.digest_counts import DistinctCounter
from spacy_calib.plugins.review.queue.orders import random_order
from spacy_calib.plugins.review.queue.units import units_of
from spacy_calib.plugins.review.stored import CorpusFile
from tests.made import corpus_of
from tests.plugins.review.queue.corpora import DOCS, MORE, SPANS


def told(corpus):
    """All that a corpus says, with labels by name."""
    said = {}
    for part, prefix in ((corpus, ""), (corpus.spans, "spans.")):
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, np.ndarray) and field.name not in ("numbers", "doc_documents", "columns"):
                named = field.name in ("labels", "gold", "tags")
                said[prefix + field.name] = [corpus.names[i] if i >= 0 else "" for i in value] if named else value.tolist()
    return {**said, "n_docs": corpus.n_docs}


def test_parts_joined_are_what_they_were():
    whole = corpus_of([*DOCS, *MORE], SPANS)
    one, other = corpus_of(DOCS, SPANS), corpus_of(MORE)
    assert told(join_corpora(one, other))["labels"] == told(whole)["labels"]
    assert told(select_docs(join_corpora(one, other), np.array([0, 1]))) == told(select_docs(one, np.array([0, 1])))
    assert told(select_docs(join_corpora(one, other), np.array([2, 3]))) == told(other)
    last = select_docs(whole, np.array([1, 3]))
    assert last.numbers.tolist() == [1, 3]
    assert [last.text(a, b) for a, b in zip(last.doc_starts, last.doc_starts[1:], strict=False)] == ["Ann can fish", "So"]


def test_what_is_of_no_use_goes_when_more_comes():
    counted = []
    kept = UsefulDocs(
        lambda corpus: np.flatnonzero(corpus.numbers_of_docs % 2 == 1), lambda corpus: counted.append(corpus.n_docs)
    )
    first, *others = number_docs([corpus_of(DOCS, SPANS), corpus_of(MORE), corpus_of(DOCS, SPANS)])
    kept.add(first)
    assert (kept.corpus.n_docs, counted) == (2, [])
    for corpus in others:
        kept.add(corpus)
    assert kept.corpus.numbers_of_docs.tolist() == [1, 3, 5]
    assert counted == [2, 2, 2]


def test_one_corpus_alone_needs_no_numbers():
    (alone,) = number_docs([corpus_of(DOCS, SPANS)])
    assert alone.numbers is None
    assert list(number_docs([])) == []


def test_a_random_order_of_some_docs_is_that_of_all():
    corpora = list(number_docs([corpus_of(DOCS, SPANS), corpus_of(MORE)]))
    both = join_corpora(*corpora)
    whole, units = (
        random_order(both, units_of(both, "token").firsts, 3),
        [units_of(corpus, "token").firsts for corpus in corpora],
    )
    apart = [random_order(corpus, firsts, 3) for corpus, firsts in zip(corpora, units, strict=True)]
    assert np.concatenate(apart).tolist() == whole.tolist()
    assert len(set(whole.tolist())) == len(whole)
    assert ((whole >= 0) & (whole < 1)).all()
    assert random_order(both, units_of(both, "token").firsts, 4).tolist() != whole.tolist()
    alone = corpus_of(DOCS, SPANS)  # all Docs are here: as ever
    shuffled = np.random.default_rng(3).permutation(len(units_of(alone, "token"))) / len(units_of(alone, "token"))
    assert random_order(alone, units_of(alone, "token").firsts, 3).tolist() == shuffled.tolist()


def test_distinct_digests_are_counted_part_by_part(monkeypatch):
    monkeypatch.setattr(distinct, "_BLOCK_SIZE", 7)
    rng, held = np.random.default_rng(0), DistinctCounter()
    digests = rng.integers(0, 2**63, size=40).astype(np.uint64) * np.uint64(2)
    for part in np.split(rng.choice(digests, size=90), 9):
        held.add(part)
    drawn = np.random.default_rng(0)
    drawn.integers(0, 2**63, size=40)
    assert held.count() == len(np.unique(drawn.choice(digests, size=90)))
    assert DistinctCounter().count() == 0


@pytest.mark.parametrize(
    ("make", "module", "fault", "code"),
    [
        (DistinctCounter, distinct, FileNotFoundError(2, "No usable temporary directory found"), "C399"),
        (CorpusFile, stored_module, OSError(28, "No space left on device"), "C468"),
    ],
)
def test_a_folder_without_room_is_named(monkeypatch, make, module, fault, code):
    def full():
        raise fault

    monkeypatch.setattr(module.tempfile, "TemporaryFile", full)
    with pytest.raises(CalibError, match=f"{code}.*{fault.strerror}; set TMPDIR"):
        make()


def test_docs_come_back_from_the_file_as_they_were():
    one, other = corpus_of(DOCS, SPANS), corpus_of([[[("a\ud800\0b", "N", {"N": 0.5})]], *MORE])
    one = replace(one, origins=({"line": 1, "meta": {"é": [1.5, None]}}, {}))
    corpora, stored = list(number_docs([one, other, one])), CorpusFile()
    for corpus in corpora:
        stored.add(corpus)
    found = stored.read_docs(np.array([1, 2, 5, 6]))
    wanted = [select_docs(corpus, np.array(docs)) for corpus, docs in zip(corpora, ([1], [0], [0, 1]), strict=True)]
    assert told(found) == told(join_corpora(join_corpora(wanted[0], wanted[1]), wanted[2]))
    assert found.numbers.tolist() == [1, 2, 5, 6]
    assert found.origins == ({}, {}, *one.origins)
    assert [found.unit, found.row_unit, found.names[:3]] == [one.unit, one.row_unit, one.names[:3]]
    assert {field.name: getattr(found, field.name).dtype for field in fields(found) if field.name in TOKEN_COLUMNS} == {
        name: getattr(one, name).dtype for name in TOKEN_COLUMNS
    }
