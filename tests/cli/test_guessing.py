"""Somebody has a fitted pipeline and guesses words and texts: he finds nothing but what docs/questions.md admits."""

from __future__ import annotations

import itertools
import string
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_calib.pairs.keyed import digest
from tests.cli.conftest import CONTEXT, calib, docs_in, ok, save_docs
from tests.conftest import gold_doc, made_up_sentences

STATE = Path("calib") / "calibration.msgpack"
# Met in the gold twice; three words of one ending, each met once.
RARE, ENDINGS = "zyxomma", ["aqqwe", "bqqwe", "cqqwe"]


@pytest.fixture(scope="module")
def secret(tmp_path_factory) -> Path:
    """A file of gold with rare words."""
    vocab, sentences = Vocab(), made_up_sentences(150, 5)
    for place, word in zip((3, 30, 60, 61, 62), (RARE, RARE, *ENDINGS), strict=True):
        sentences[place] = [("the", "DET"), (word, "NOUN"), *sentences[place]]
    docs = {doc.text: doc for doc in (gold_doc(vocab, sentence) for sentence in sentences)}
    return save_docs(tmp_path_factory.mktemp("secret") / "gold.spacy", list(docs.values()))


@pytest.fixture(scope="module")
def fitted(model, secret) -> Path:
    """A pipeline that was fitted on it, with context."""
    path = secret.parent / "fitted"
    ok(calib("fit", model, secret, path, "--method", "isotonic", CONTEXT, "--silent"))
    return path


def gold(path: Path) -> list[Doc]:
    return docs_in(path)


def guesses(path: Path) -> list[int]:
    """What a dictionary gives, all endings of three letters, and digests of texts."""
    docs = gold(path)
    words = {form for doc in docs for token in doc for form in (token.text.lower(), token.text[-3:])}
    endings = map("".join, itertools.product(string.ascii_lowercase, repeat=3))
    texts = (text for doc in docs for text in (doc.text, *(sentence.text for sentence in doc.sents)))
    named = [one for one in map(get_string_id, {*words, *endings}) if one >= 1 << 32]  # others are numbers of symbols: "acl"
    return [*named, *map(digest, texts)]


def test_no_dictionary_and_no_text_tells_what_is_in_a_state(fitted, secret):
    state = (fitted / STATE).read_bytes()
    assert RARE.encode() not in state
    asked = np.array(guesses(secret), dtype=np.uint64)
    for start, order in itertools.product(range(8), ("<u8", ">u8")):
        assert not np.isin(np.frombuffer(state[start : start + (len(state) - start) // 8 * 8], dtype=order), asked).any()


def test_with_the_salt_of_a_pipeline_a_guess_tells_frequent_words_alone(fitted):
    """What questions.md admits: a word that was met three times or more."""
    nlp = spacy.load(fitted)
    known = nlp.get_pipe("calib").tokens.context.vocabulary_

    def guessed(words):
        from spacy_calib.pipe.lookup import words_of

        forms, endings = known.find_indices(words_of([Doc(nlp.vocab, words=words)]))
        return (forms >= 0).tolist(), (endings >= 0).tolist()

    assert guessed([RARE]) == ([False], [False])
    assert guessed(ENDINGS) == ([False] * 3, [True] * 3)
    assert guessed(["the", "nowhere"])[0][0]


def test_fits_differ_in_the_salt_and_not_in_what_they_say(fitted, model, secret, tmp_path):
    states, scores = set(), set()
    ok(calib("fit", model, secret, tmp_path / "again", "--method", "isotonic", CONTEXT, "--silent"))
    for path in (fitted, tmp_path / "again"):
        doc = spacy.load(path)("the old zyxomma saw a light duck .")
        states.add((path / STATE).read_bytes())
        scores.add(tuple(token._.calib_score for token in doc))
    assert (len(states), len(scores)) == (2, 1)


def test_the_data_of_a_fit_is_known_again(fitted, secret):
    assert "JUDGED ON THE FIT DATA" in calib("evaluate", fitted, secret).text
