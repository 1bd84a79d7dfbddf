import numpy as np
import pytest
import spacy
from spacy.strings import get_string_id
from spacy.tokens import Doc

from spacy_calib.context.features import DocFunction
from spacy_calib.pipe.lookup import words_of


@pytest.fixture(scope="module")
def docs():
    vocab = spacy.blank("xx").vocab
    made = [["The", "DOGS", "\n", "ate", "12", "dogs"], [], ["Dogs"], []]
    return [Doc(vocab, words=words) for words in made]


def test_hashes_shapes_and_white_space(docs):
    words = words_of(docs)
    assert words.starts.tolist() == [0, 6, 6, 7, 7]
    assert words.docs.tolist() == [0, 0, 0, 0, 0, 0, 2]
    assert words.forms.tolist()[1] == words.forms.tolist()[5] == words.forms.tolist()[6] == get_string_id("dogs")
    assert words.endings.tolist()[5] == get_string_id("ogs")
    assert words.shapes.tolist() == [1, 0, 0, 0, 2, 0, 1]
    assert words.counts.tolist() == [True, True, False, True, True, True, True]


def test_tokens_that_may_carry_no_label_do_not_count(docs):
    assert words_of(docs, first=1).counts.tolist() == [False, True, False, True, True, True, False]


def test_batches_joined_are_the_whole(docs):
    whole, parts = words_of(docs), words_of([]).concatenate([words_of(docs[:1]), words_of(docs[1:])])
    assert (whole.starts == parts.starts).all()
    assert (whole.forms == parts.forms).all()


def test_nothing(docs):
    assert len(words_of([])) == len(words_of([docs[1]])) == 0


def test_columns_of_a_function_of_docs(docs):
    values = np.zeros((7, 3))
    assert words_of(docs, [DocFunction("mine", lambda docs: values)]).columns["mine"].shape == (7, 3)
