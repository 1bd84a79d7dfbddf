"""What commands write holds no words of the gold, and a Doc that was cut none of the rest: an attacker has it, and looks for them."""

import gzip
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.strings import StringStore, get_string_id
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.vocab import Vocab

from tests.cli.conftest import calib, entity_docs, files_of, ok, save_docs
from tests.conftest import examples_for, run_upstream

# Words, lemmas and names that stand in one sentence of the gold and nowhere else.
WORDS, LEMMAS = ["mail", "Jane.Doe@acme-leak.example", "Zquxville"], ["mail", "qwertlemma", "zquxville"]
SECRETS = [word.lower() for word in (*WORDS[1:], *LEMMAS[1:])]


def planted(vocab: Vocab, ents: bool) -> Doc:
    doc = Doc(vocab, words=WORDS, tags=["VERB", "NOUN", "PROPN"] if ents else ["VERB", "NOUN", "NOUN"], lemmas=LEMMAS)
    doc.set_ents([Span(doc, 2, 3, "LOC")] if ents else [], default="outside")
    return doc


def with_secrets(source: Path, path: Path, ents: bool = False) -> Path:
    """The Docs of a file and the sentence with the secrets."""
    vocab = Vocab()
    return save_docs(path, [*DocBin().from_disk(source).get_docs(vocab), planted(vocab, ents)])


def strings_of(folder: Path) -> set[str]:
    return set(json.loads((folder / "vocab" / "strings.json").read_bytes()))


def found_in(folder: Path) -> list[tuple[str, str]]:
    """(file, secret) of all that a search of the folder finds, whatever the case."""
    hits = []
    for name, content in files_of(folder).items():
        text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).lower()
        hits += [(name, secret) for secret in SECRETS if secret.encode() in text]
    return hits


@pytest.mark.parametrize("component", ["tagger", "trainable_lemmatizer"])
def test_a_fit_writes_no_words_of_the_gold(model, dev, component, tmp_path):
    gold = with_secrets(dev, tmp_path / "gold.spacy")
    ok(calib("fit", model, gold, tmp_path / "out", "-C", component, "--method", "isotonic", "--silent"))
    assert found_in(tmp_path / "out") == []
    nlp = spacy.load(tmp_path / "out")
    labels = {label for _, pipe in nlp.components for label in getattr(pipe, "labels", ())}
    assert strings_of(model) <= strings_of(tmp_path / "out") <= strings_of(model) | labels
    doc = nlp("the old dog saw a duck .")
    assert all(token._.calib_score is not None for token in doc)


def test_nothing_that_is_made_of_a_fitted_recognizer_holds_words_of_the_gold(ner_model, entity_dev, tmp_path):
    gold = with_secrets(entity_dev, tmp_path / "gold.spacy", ents=True)
    first, cut, adapted, stock = (tmp_path / name for name in ("first", "cut", "adapted", "stock"))
    ok(calib("fit", ner_model, gold, first, "-C", "ner", "--method", "isotonic", "--silent"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # made-up sentences repeat themselves
        ok(
            calib(
                "adapt", first, save_docs(tmp_path / "few.spacy", [*entity_docs(6, 5), planted(Vocab(), True)]), adapted,
                "--silent",
            )
        )  # fmt: skip
    ok(calib("threshold", first, gold, "-p", 0.7, "--apply", cut, "--silent"))
    ok(calib("stock", cut, stock, "--silent"))
    assert [(path.name, *hit) for path in (first, adapted, cut, stock) for hit in found_in(path)] == []
    assert strings_of(stock) - strings_of(ner_model) <= {"O"}  # a label of the calib pipe that is gone


def test_a_knowledge_base_keeps_no_words_of_the_gold_either(changed_model, dev, tmp_path):
    """It writes the strings of the vocab into a file of its own."""
    model = changed_model(lambda nlp: (nlp.add_pipe("entity_linker"), nlp.disable_pipe("entity_linker")))  # it is not trained
    ok(calib("fit", model, with_secrets(dev, tmp_path / "gold.spacy"), tmp_path / "out", "--method", "isotonic", "--silent"))
    assert [name for name in files_of(tmp_path / "out") if name.endswith("strings.json")] == [
        "entity_linker/kb/strings.json",
        "vocab/strings.json",
    ]
    assert found_in(tmp_path / "out") == []


def test_a_pipeline_fitted_in_python_holds_none_where_the_strings_are_put_back(nlp, tmp_path):
    """As docs/reference/python.md does it; without it spaCy writes all that was read."""
    strings = StringStore(list(nlp.vocab.strings))
    calib_pipe = nlp.add_pipe("calib", after="tagger")
    gold = [*(example.reference for example in examples_for(nlp, 80, seed=2)), planted(nlp.vocab, ents=False)]
    with nlp.select_pipes(disable=["calib"]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calib_pipe.fit(run_upstream(nlp, [Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc) for doc in gold]))
    nlp.to_disk(tmp_path / "out")
    assert {name for name, _ in found_in(tmp_path / "out")} == {"vocab/strings.json"}
    strings.to_disk(tmp_path / "out" / "vocab" / "strings.json")
    assert found_in(tmp_path / "out") == []
    doc = spacy.load(tmp_path / "out")("the old dog saw a duck .")
    assert all(token._.calib_score is not None for token in doc)


def numbers_in(value: object) -> list[int]:
    """All whole numbers in what a Doc keeps."""
    if isinstance(value, dict):
        return [number for part in (*value.keys(), *value.values()) for number in numbers_in(part)]
    if isinstance(value, (list, tuple)):
        return [number for part in value for number in numbers_in(part)]
    return np.ravel(value).tolist() if getattr(value, "dtype", np.dtype(type(value))).kind in "iu" else []


def texts_in(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(map(texts_in, (*value.keys(), *value.values())))
    return " ".join(map(texts_in, value)) if isinstance(value, (list, tuple)) else value if isinstance(value, str) else ""


def test_a_cut_doc_holds_no_word_and_no_hash_of_the_rest(calibrated_ner):
    """As `Span.as_doc(copy_user_data=True)` cuts it, and in each way that it is written."""
    nlp = spacy.load(calibrated_ner)
    doc = nlp("Zquxville Qwertson bought Acme near Paris . the old dog saw a duck .")
    doc[-1]._.calib_score  # noqa: B018  (what was read stays beside, and must not go along)
    part = doc[7:].as_doc(copy_user_data=True)
    assert part._.calib_ent is None
    away = [*(token.text for token in doc[:7]), *(ent.text for ent in doc.ents), doc.text, doc[:7].text]
    away = [text for text in away if text not in part.text]
    read = next(iter(DocBin(store_user_data=True, docs=[part]).get_docs(Vocab())))
    for one in (part, read, Doc(Vocab()).from_bytes(part.to_bytes()), pickle.loads(pickle.dumps(part))):
        numbers, texts = {number & (1 << 64) - 1 for number in numbers_in(one.user_data)}, texts_in(one.user_data).split()
        hashes = {form: get_string_id(form) for text in away for form in (text, text.lower())}
        # Neither the hash nor a half of it, by which a dictionary would read it back.
        assert not [form for form, key in hashes.items() if {key, key >> 32, key & 0xFFFFFFFF} & numbers]
        assert not set(away) & set(texts)
    for text in away:
        assert text.encode() not in part.to_bytes()
