"""Somebody has the files and guesses words and texts: he finds nothing but what docs/privacy.md admits."""

from __future__ import annotations

import io
import itertools
import string
import zipfile
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.strings import get_string_id
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_calib.corpus.distinct import digest
from spacy_calib.doc.reading import GoldReader, document_digest, document_of
from tests.cli.conftest import calib, ok, save_docs
from tests.conftest import gold_doc, made_up_sentences

STATE = Path("calib") / "calibration.msgpack"
# Met in the gold twice; three words of one ending, each met once.
RARE, ENDINGS = "zyxomma", ["aqqwe", "bqqwe", "cqqwe"]
NEW = {"with": ["--key", "key"], "without": []}


@pytest.fixture(scope="module")
def secret(tmp_path_factory) -> Path:
    """A file of gold with rare words."""
    vocab, sentences = Vocab(), made_up_sentences(150, 5)
    for place, word in zip((3, 30, 60, 61, 62), (RARE, RARE, *ENDINGS), strict=True):
        sentences[place] = [("the", "DET"), (word, "NOUN"), *sentences[place]]
    docs = {doc.text: doc for doc in (gold_doc(vocab, sentence) for sentence in sentences)}
    return save_docs(tmp_path_factory.mktemp("secret") / "gold.spacy", list(docs.values()))


@pytest.fixture(scope="module")
def files(model, secret) -> dict[str, Path]:
    """Statistics with a key and without one, and those for a judgement, of pipelines that were fitted on them."""
    folder, made = secret.parent, {}
    for name, key in NEW.items():
        more = [folder / one if one == "key" else one for one in key]
        ok(calib("collect", model, secret, folder / f"{name}.npz", *more, "--silent"))
        fitted = folder / f"fitted-{name}"
        ok(
            calib(
                "fit", model, "--from", folder / f"{name}.npz", fitted, *more, "--method", "isotonic", "--context", "--silent"
            )
        )
        ok(calib("collect", fitted, secret, folder / f"judged-{name}.npz", "--judge", *more, "--silent"))
        made |= {
            name: folder / f"{name}.npz",
            f"judged {name}": folder / f"judged-{name}.npz",
            f"fitted {name}": fitted / STATE,
        }
    ok(calib("fit", model, secret, folder / "fitted", "--method", "isotonic", "--context", "--silent"))
    return {**made, "fitted": folder / "fitted" / STATE}


KINDS = ["with", "without", "judged with", "judged without", "fitted with", "fitted without", "fitted"]


def content(path: Path) -> bytes:
    """All that is in a file, unpacked."""
    if path.suffix != ".npz":
        return path.read_bytes()
    with zipfile.ZipFile(path) as held:
        return b"".join(map(held.read, held.namelist()))


def arrays(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as held:
        return {name: np.load(io.BytesIO(held.read(name))) for name in held.namelist() if name.endswith(".npy")}


def gold(path: Path) -> list[Doc]:
    return list(DocBin().from_disk(path).get_docs(Vocab()))


def guesses(path: Path) -> list[int]:
    """What a dictionary gives, all endings of three letters, and digests of texts and documents."""
    docs = gold(path)
    words = {form for doc in docs for token in doc for form in (token.text.lower(), token.text[-3:])}
    endings = map("".join, itertools.product(string.ascii_lowercase, repeat=3))
    texts = (text for doc in docs for text in (doc.text, *(sentence.text for sentence in doc.sents)))
    named = [one for one in map(get_string_id, {*words, *endings}) if one >= 1 << 32]  # others are numbers of symbols: "acl"
    documents = (document_digest(document_of(one), one.reference) for one in GoldReader().examples(spacy.blank("xx"), path))
    return [*named, *map(digest, texts), *documents]


@pytest.mark.parametrize("kind", KINDS)
def test_no_dictionary_and_no_text_tells_what_is_in_a_file(files, secret, kind):
    held = content(files[kind])
    assert RARE.encode() not in held
    asked = np.array(guesses(secret), dtype=np.uint64)
    for start, order in itertools.product(range(8), ("<u8", ">u8")):
        assert not np.isin(np.frombuffer(held[start : start + (len(held) - start) // 8 * 8], dtype=order), asked).any()


@pytest.mark.parametrize("kind", ["with", "without"])
def test_no_number_of_a_token_tells_where_its_word_stands_again(files, secret, kind):
    """Running text in a secret code of words is soon read: by how often each stands, and beside which."""
    n_tokens, n_forms = sum(map(len, gold(secret))), len({token.text for doc in gold(secret) for token in doc})
    distinct = {
        name: len(np.unique(array))
        for name, array in arrays(files[kind]).items()
        if array.dtype.kind == "u" and len(array) == n_tokens
    }
    assert all(n == n_tokens > 5 * n_forms for n in distinct.values())
    assert len(distinct) == {"with": 2, "without": 0}[kind]


def test_the_key_and_what_is_made_of_it_are_in_no_file(files, secret):
    secret_of = (secret.parent / "key").read_text("ascii").strip()
    salt = spacy.load(secret.parent / "fitted-with").get_pipe("calib").learned.seen.salt
    for kind in KINDS:
        held = content(files[kind])
        assert secret_of.encode() not in held
        assert bytes.fromhex(secret_of) not in held
        assert (salt.encode() in held) == (kind == "fitted with")


@pytest.mark.parametrize("kind", ["fitted", "fitted-with"])
def test_with_the_salt_of_a_pipeline_a_guess_tells_frequent_words_alone(secret, kind):
    """What privacy.md admits: a word that was met three times or more."""
    known = spacy.load(secret.parent / kind).get_pipe("calib").tokens.context.known_
    vocab = spacy.load(secret.parent / kind).vocab

    def guessed(words):
        from spacy_calib.doc.words import words_of

        forms, endings = known.places(words_of([Doc(vocab, words=words)]))
        return (forms >= 0).tolist(), (endings >= 0).tolist()

    assert guessed([RARE]) == ([False], [False])
    assert guessed(ENDINGS) == ([False] * 3, [True] * 3)
    assert guessed(["the", "nowhere"])[0][0]


def test_fits_differ_in_the_salt_and_not_in_what_they_say(model, secret, tmp_path):
    states, scores = set(), set()
    for name, more in (("a", []), ("b", []), ("c", ["--key", secret.parent / "key"]), ("d", ["--key", secret.parent / "key"])):
        ok(calib("fit", model, secret, tmp_path / name, "--method", "isotonic", "--context", *more, "--silent"))
        nlp = spacy.load(tmp_path / name)
        doc = nlp("the old zyxomma saw a light duck .")
        states.add((tmp_path / name / STATE).read_bytes())
        scores.add(tuple(token._.calib_score for token in doc))
    assert len(scores) == 1
    assert len(states) == 3  # of one key to the byte


def test_the_data_of_a_fit_is_known_again_with_the_key(files, secret):
    for name, known in (("fitted", True), ("fitted-with", True), ("fitted-without", False)):
        said = calib("evaluate", secret.parent / name, secret).text
        assert ("JUDGED ON THE FIT DATA" in said) == known
