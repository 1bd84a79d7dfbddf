"""`spacy calib evaluate --by`: parts of the gold that share a value of a key."""

import json

import numpy as np
import pytest
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_calib import report
from tests.cli.conftest import calib, entity_docs, ok, refuses, save_recognizer
from tests.conftest import gold_doc, made_up_sentences
from tests.sentences import says


def save_filed(path, docs, **keys):
    """Docs with a value under each key. keys: Key -> number of the Doc -> value."""
    for number, doc in enumerate(docs):
        doc.user_data.update({key: value for key, of in keys.items() if (value := of(number)) is not None})
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


@pytest.fixture(scope="module")
def filed(tmp_path_factory):
    """Gold whose second half has wrong tags in every third place, filed under "kind"."""
    docs = [gold_doc(Vocab(), sentence) for sentence in made_up_sentences(120, seed=4)]
    for doc in docs[60:]:
        for token in list(doc)[::3]:
            token.tag_ = docs[0][0].tag_
    kinds = lambda n: "odd" if n >= 60 else "even" if n < 55 else "three" if n < 56 else None  # noqa: E731
    return save_filed(tmp_path_factory.mktemp("filed") / "gold.spacy", docs, kind=kinds)


@pytest.mark.parametrize("more", [(), ("-G",)], ids=["documents", "sentences"])
def test_what_is_off_stands_first_and_is_told_everywhere(calibrated, filed, tmp_path, more):
    page, numbers = tmp_path / "page.html", tmp_path / "numbers.json"
    outcome = ok(calib("evaluate", calibrated, filed, "--by", "kind", "-o", page, "-o", numbers, *more))
    (table,) = json.loads(numbers.read_text()).values()
    told = table["slices"]
    assert (told["by"], told["rate"], told["too_small"]) == ("kind", 0.05, 1)
    odd, even = told["rows"]
    assert (odd["slice"], odd["off"], even["slice"]) == ("odd", True, "even")
    assert odd["gap"] > 0.15 > 2 * abs(even["gap"])
    assert odd["gap"] == pytest.approx(odd["score"] - odd["right"])
    assert odd["calibrated"] > odd["floor95"]
    assert "OFF odd" in outcome.text
    assert f"{1 + even['off']} of 2 slices" in outcome.text
    assert "1 more with fewer than 30 tokens or 2 documents is not evaluated" in outcome.text
    text = page.read_text(encoding="utf8")
    assert '<h3 id="slices-0">Where scores are off</h3>' in text
    assert "<strong>odd</strong> (off)" in text


def test_a_function_of_the_doc_is_a_key(calibrated, filed, register):
    register("calib_keys", "length", lambda doc: "long" if len(doc) > 6 else "short")
    (view,) = report(str(calibrated), filed, by="length")["views"]
    assert {row["slice"] for row in view["slices"]["rows"]} == {"long", "short"}
    assert sum(row["n"] for row in view["slices"]["rows"]) == view["table"]["tokens"]


def test_entities_have_slices_of_their_own(tmp_path):
    docs = [doc for doc in entity_docs(80, seed=1) if doc.ents]
    model = save_recognizer("ner", tmp_path / "model")
    gold = save_filed(tmp_path / "gold.spacy", docs, kind=lambda n: "ab"[n % 2])
    ok(calib("fit", model, gold, tmp_path / "fitted", "--component", "ner", "--method", "isotonic"))
    ok(calib("evaluate", tmp_path / "fitted", gold, "--by", "kind", "-o", tmp_path / "e.json"))
    (table,) = json.loads((tmp_path / "e.json").read_text()).values()
    rows = table["entities"]["slices"]["rows"]
    assert {row["slice"] for row in rows} == {"a", "b"}
    assert sum(row["n"] for row in rows) == table["entities"]["pairs"]
    assert np.isclose(sum(row["n"] * row["right"] for row in rows), table["entities"]["pairs"] * table["entities"]["accuracy"])


def test_a_key_that_no_document_has_is_refused(calibrated, filed):
    refuses(calib("evaluate", calibrated, filed, "--by", "genre"), says("C601", key="genre"))
