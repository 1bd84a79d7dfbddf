import numpy as np
import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_calib.annotations import get_annotation, label_hashes
from spacy_calib.gold.example_reader import count_gold_begins, gold_columns
from spacy_calib.types import Marginals

UNKNOWN, NONE = -1, -2


def hashes(*labels: str):
    """Gold hashes, 0 for no gold ("")."""
    return np.array([label_hashes([label])[0] if label else 0 for label in labels], dtype=np.uint64)


def entries(*given: tuple[int, int, str], n_tokens: int, named: bool) -> Marginals:
    rows, tags, names = zip(*given, strict=True)
    return Marginals(np.array(rows), np.array(tags), np.full(len(rows), 0.5), n_tokens, names if named else None)


@pytest.mark.parametrize("named", [False, True])
def test_unknown_gold_and_no_gold_are_told_apart(named):
    """Labels by their column, and lemmas by the name of the entry: -1 is gold that no column gives, -2 is no gold."""
    labels = ["walk", "see", "saw"]
    given = entries((0, 1, "see"), (0, 2, "saw"), (1, 0, "walk"), (2, 0, "walk"), (3, 2, "saw"), n_tokens=6, named=named)
    found = gold_columns(given, hashes("see", "be", "", "saw", "", "be"), labels)
    assert found.tolist() == [1, UNKNOWN, NONE, 2, NONE, UNKNOWN]


def test_the_column_of_a_lemma_is_that_of_the_entry_with_its_name():
    """Two trees give one lemma at different tokens; a lemma that no entry of its own token has is unknown, though another token's has it."""
    given = entries((0, 4, "see"), (1, 7, "see"), (2, 7, "saw"), n_tokens=3, named=True)
    found = gold_columns(given, hashes("see", "see", "see"), ["never", "asked"])
    assert found.tolist() == [4, 7, UNKNOWN]


@pytest.mark.parametrize("annotation", ["tag", "lemma", "pos", "morph", "ner", "biluo"])
def test_white_space_has_no_gold_though_the_gold_doc_says_something_of_it(annotation):
    words, vocab = ["a", "\n", "b", "  "], Vocab()
    gold = Doc(
        vocab, words=words, tags=["T"] * 4, lemmas=["l"] * 4, pos=["X"] * 4, morphs=["F=1"] * 4,
        ents=["B-PER", "I-PER", "I-PER", "B-PER"],
    )  # fmt: skip
    own = get_annotation(annotation)
    aligned = own.aligned_gold(Example(Doc(vocab, words=words), gold))
    assert (aligned != 0).tolist() == [True, False, True, False]
    assert aligned[[0, 2]].tolist() == own.gold_hashes(gold)[[0, 2]].tolist()
    assert (own.gold_hashes(gold) != 0).all()


def test_a_gold_span_begins_in_the_predicted_token_that_holds_its_first_character():
    gold = Doc(Vocab(), words=["Ann", "saw", "New", "York", "now"])
    gold.ents = [Span(gold, 0, 1, "PER"), Span(gold, 2, 4, "GPE"), Span(gold, 4, 5, "DATE")]
    predicted = Doc(gold.vocab, words=["Ann", "saw New", "York", "n", "ow"], spaces=[True, True, True, False, False])
    assert count_gold_begins(get_annotation("ner"), Example(predicted, gold), gold.ents).tolist() == [1, 1, 0, 1, 0]
