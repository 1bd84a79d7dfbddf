"""Digests of the fit's texts: known again in other chunks and another tokenization, and nothing else is taken for known."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.annotations import get_annotation
from spacy_calib.gold.reading import TextWatch
from spacy_calib.pairs import seen_texts
from spacy_calib.pairs.keyed import digest
from spacy_calib.pairs.seen_texts import FitTextDigests, TextUnits, TrainTestOverlap, format_overlap_warning

SENTENCES = [[f"w{i}", "is", "not", "the", f"v{i}", "."] for i in range(20)]


def units_of(sentences, size, tag="N") -> TextUnits:
    """Documents of so many sentences, through Docs and a watch."""
    vocab = spacy.blank("xx").vocab
    watch = TextWatch(get_annotation("tag"))
    examples = []
    for begin in range(0, len(sentences), size):
        words = [word for sentence in sentences[begin : begin + size] for word in sentence]
        starts = [i == 0 for sentence in sentences[begin : begin + size] for i in range(len(sentence))]
        gold = Doc(vocab, words=words, tags=[tag] * len(words), sent_starts=starts)
        examples.append(Example(Doc(vocab, words=words), gold))
    assert list(watch.watch(examples)) == examples
    return watch.units()


def digests_of_fit(sentences, size) -> FitTextDigests:
    return FitTextDigests(salt="salt").with_texts(units_of(sentences, size))


def test_white_space_makes_no_other_text():
    assert digest("do n't\nsay ") == digest("don't say") != digest("Don't say")
    digest("\ud800")  # a lone surrogate is a text too


@pytest.mark.parametrize(("of_fit", "judged"), [(10, 10), (10, 1), (1, 10), (7, 10), (10, 7)])
def test_the_same_data_is_known_in_any_chunks(of_fit, judged):
    share = digests_of_fit(SENTENCES, of_fit).overlap_with(units_of(SENTENCES, judged))
    assert share == TrainTestOverlap(-(-20 // judged), -(-20 // judged), 1.0)
    assert share.is_fit_data


def test_the_share_is_that_of_the_words():
    fit = digests_of_fit(SENTENCES[:5] + [["a"] * 30], 1)
    # Of four documents of five sentences one is known, of the others a single sentence each at most.
    share = fit.overlap_with(units_of(SENTENCES, 5))
    assert share == TrainTestOverlap(4, 1, 0.25)
    assert fit.overlap_with(units_of(SENTENCES[5:], 5)) == TrainTestOverlap(3, 0, 0.0)
    assert not fit.overlap_with(units_of([*SENTENCES[5:], SENTENCES[0]], 16)).is_fit_data  # one in sixteen


def test_short_texts_are_not_compared():
    short = [[f"w{i}", "is", "so"] for i in range(20)]
    assert digests_of_fit(short, 1).overlap_with(units_of(short, 1)) is None
    assert digests_of_fit(short, 10).overlap_with(units_of(short, 10)).share == 1.0  # as a whole they are long
    assert digests_of_fit([*short, *SENTENCES], 1).overlap_with(units_of([*short, *SENTENCES[:1]], 1)) == TrainTestOverlap(
        1, 1, 1.0
    )


def test_short_texts_are_not_kept_so_that_no_dictionary_reads_them():
    """ "Dear X," has few guesses: of ten letters with a sentence of six words each, the six words and the whole letters are kept."""
    letters = [[f"Dear w{i} ,".split(), ["I", "will", "not", "come", "again", "."]] for i in range(10)]
    fit = FitTextDigests(salt="salt").with_texts(units_of([sentence for letter in letters for sentence in letter], 2))
    assert len(fit.digests) == 11
    guesses = TextUnits(
        np.array([digest(f"Dear w{i} ,") for i in range(10)], dtype=np.uint64), np.full(10, 6), np.arange(10), np.ones(10, bool)
    )
    assert fit.overlap_with(guesses) is None  # nothing is known of any
    assert len(fit.with_texts(guesses).digests) == 21  # were they longer


def test_documents_without_gold_do_not_count():
    assert digests_of_fit(SENTENCES, 1).overlap_with(units_of(SENTENCES, 1, tag="")) is None


def test_very_many_digests_are_sampled(monkeypatch):
    monkeypatch.setattr(seen_texts, "MOST", 50)
    sentences = [[f"word{i}", *["and", "so", "on", "it", "goes"]] for i in range(1000)]
    fit = digests_of_fit(sentences[:500], 1)
    assert len(fit.digests) == 50
    share = fit.overlap_with(units_of(sentences, 1))
    assert share.share == pytest.approx(0.5, abs=0.15)
    assert 50 <= share.documents <= 150  # those that can be compared
    assert fit.overlap_with(units_of(sentences[500:], 1)).seen == 0


def test_the_state_holds_numbers_alone():
    fit = digests_of_fit(SENTENCES, 10)
    state = fit.state()
    assert state.pop("salt") == "salt"
    assert {key: value.dtype for key, value in state.items()} == {"digests": np.dtype(np.uint64)}
    state["salt"] = "salt"
    np.testing.assert_array_equal(FitTextDigests.read(state).digests, fit.digests)


def test_the_warning_of_overlap_by_hand():
    assert format_overlap_warning(None) is format_overlap_warning(TrainTestOverlap(10, 0, 0.1).to_dict()) is None
    assert "8 of 10 documents (75 % of the words)" in format_overlap_warning(TrainTestOverlap(10, 8, 0.75).to_dict())
