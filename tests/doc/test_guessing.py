"""Somebody has a part that was cut out of a Doc with its user data, the pipeline's code, and a dictionary: no word of the rest shows."""

import pickle
from collections import Counter

import numpy as np
import pytest
import spacy
from spacy.strings import get_string_id
from spacy.tokens import Doc, DocBin, Span

from spacy_calib.doc.store import text_hash
from tests.doc.test_span_attributes import make_calib

NAME, OTHERS = "Zquxville", ["met", "Anna", "in", "a", "town", "that", "nobody", "has", "seen", "."]
# A dictionary of names of one length: lengths are not secret.
DICTIONARY = [NAME, *(f"{a}{b}{c}{d}ville" for a in "BDFGKLMN" for b in "aeiou" for c in "rstvwx" for d in "aeiou")]


@pytest.fixture(scope="module")
def part() -> Doc:
    """The last words of a text in which a name stands five times, as entity and as word."""
    nlp = spacy.blank("xx")
    words = [word for other in OTHERS[:5] for word in (NAME, other)] + OTHERS[5:]
    doc = Doc(nlp.vocab, words=words)
    doc.set_ents([Span(doc, i, i + 1, "A") for i, word in enumerate(words) if word == NAME], default="outside")
    doc = make_calib(nlp, "ner")(doc)
    assert doc[0:1].text == NAME
    cut = doc[-5:].as_doc(copy_user_data=True)
    assert NAME not in cut.text
    return cut


WAYS = {
    "bytes": lambda doc: Doc(doc.vocab).from_bytes(doc.to_bytes()),
    "docbin": lambda doc: next(DocBin(store_user_data=True, docs=[doc]).get_docs(doc.vocab)),
    "pickle": lambda doc: pickle.loads(pickle.dumps(doc)),
}


def columns_of(value: object) -> list[list[int]]:
    """All sequences of whole numbers in what a Doc keeps."""
    if isinstance(value, dict):
        return [column for item in value.values() for column in columns_of(item)]
    array = np.asarray(value)
    return [array.reshape(-1).tolist()] if array.dtype.kind in "iu" else []


@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_repeats_leaves_no_digest_that_repeats(part, way):
    """Whoever tries every word of a dictionary, by eight to 64 bits of its hash: the name is in no column more often than others."""
    (block,) = WAYS[way](part).user_data.values()
    numbers = Counter(number for column in columns_of(block) for number in column)
    for bits in (8, 16, 32, 64):
        hits = {word: numbers[get_string_id(word) & ((1 << bits) - 1)] for word in DICTIONARY}
        others = [hits[word] for word in DICTIONARY[1:]]
        assert hits[NAME] <= max(others) if bits == 8 else hits[NAME] == max(others) == 0


@pytest.mark.parametrize("way", WAYS)
def test_what_is_kept_of_the_text_leaves_one_guess_in_256(part, way):
    """Somebody who knows all but the name tries the whole text: eight bits agree for the right name, and for some others."""
    (block,) = WAYS[way](part).user_data.values()
    assert 0 <= block["text"] < 256
    texts = {word: [part_word for other in OTHERS[:5] for part_word in (word, other)] + OTHERS[5:] for word in DICTIONARY}
    hashes = {word: np.array([get_string_id(one) for one in text], dtype="<u8") for word, text in texts.items()}
    fitting = [word for word in DICTIONARY if text_hash(hashes[word]) & 255 == block["text"]]
    assert NAME in fitting
    assert len(fitting) > len(DICTIONARY) / 1000
    assert len(fitting) > 1
