"""`spacy calib audit`: planted errors are found, of every kind of label."""

import csv
import io
import json
import re
from types import SimpleNamespace

import pytest
from spacy.tokens import Doc, Span

from spacy_calib.annotations import Kind
from spacy_calib.plugins.review.audit_command import audit, reads_low_scores
from tests.cli.conftest import calib, docs_in, entity_docs, json_of, ok, refuses, save_docs
from tests.plugins.kinds import KINDS, fit, make
from tests.sentences import says


def told(model, data, *options):
    return json_of("audit", model, data, *options)


@pytest.fixture(scope="module")
def planted_tags(gold, tmp_path_factory):
    """Gold with another tag on one noun of every tenth sentence: (file, Docs that have one)."""
    docs, changed = docs_in(gold / "dev.spacy"), []
    for number, doc in enumerate(docs):
        nouns = [token for token in doc if token.tag_ == "NOUN"]
        if number % 10 == 0 and nouns:
            nouns[0].tag_ = "DET"
            changed.append(number)
    return save_docs(tmp_path_factory.mktemp("planted") / "planted.spacy", docs), changed


def test_wrong_tags_come_first(model, calibrated, planted_tags):
    data, changed = planted_tags
    for pipeline in (model, calibrated):
        found = told(pipeline, data)
        hits = [one["doc"] in changed and (one["gold"], one["suggestion"]) == ("DET", "NOUN") for one in found["ranked"]]
        assert sum(hits[:12]) >= 4  # the gold has errors of its own; of 591 tokens 12 were changed
        assert found["unit"] == "token"
        assert found["doubted"] == len(found["ranked"]) == sum(found["kinds"].values())
        assert found["expected_wrong"] <= found["labels"]


def test_wrong_entities_come_first_under_their_kind(calibrated_ner, tmp_path):
    docs, planted = entity_docs(60, 31), {}
    for number, doc in enumerate(docs[:16]):
        ents = list(doc.ents)
        kind = ("missing", "superfluous", "wrong label", "wrong border")[number % 4]
        one = ents.pop(0) if kind != "superfluous" else None
        if kind == "superfluous":
            free = next(token.i for token in doc if not token.ent_type_ and token.is_lower)
            ents.append(Span(doc, free, free + 1, "PER"))
        elif kind == "wrong label":
            ents.append(Span(doc, one.start, one.end, "ORG" if one.label_ != "ORG" else "PER"))
        elif kind == "wrong border":
            end = one.end + 1 if one.end < ents[0].start else one.start + 1
            ents.append(Span(doc, one.start, end, one.label_))
        doc.set_ents(ents)
        planted[number] = kind
    found = told(calibrated_ner, save_docs(tmp_path / "planted.spacy", docs), "--component", "ner")
    first = {(one["doc"], one["kind"]) for one in found["ranked"][:40]}
    assert found["unit"] == "entity"
    for kind in set(planted.values()):
        assert any((doc, own) in first for doc, own in planted.items() if own == kind), kind


@pytest.mark.parametrize("kind", ["categories", "several categories", "arcs"])
def test_wrong_categories_and_arcs_are_found(kind, tmp_path):
    made = make(KINDS[kind], tmp_path)
    ok(fit(made, "fitted"))  # so that maps of its kind doubt the gold, and none is chosen for each fold
    docs = docs_in(made.dev)
    for doc in docs[:4]:
        if kind == "arcs":
            leaf = next(token for token in doc if not list(token.children) and token.head.i != token.i)
            leaf.head = next(token for token in doc if token not in (leaf, leaf.head))
        else:
            values = list(doc.cats.values())
            doc.cats = dict(zip(doc.cats, values[1:] + values[:1], strict=True))
    found = told(made.fitted, save_docs(tmp_path / "planted.spacy", docs))
    assert found["unit"] == ("token" if kind == "arcs" else "document")
    first = [one["doc"] for one in found["ranked"][:12]]
    assert len({0, 1, 2, 3} & set(first)) >= 2
    if kind == "arcs":
        assert {"head", "suggested_head"} <= found["ranked"][0].keys()


@pytest.mark.parametrize("flag", [None, "overlapping", "of_arcs", "spans"])
def test_scores_below_the_threshold_are_looked_at_where_one_label_of_several_is_right(flag):
    kind = Kind(**({} if flag in (None, "spans") else {flag: True}))
    assert reads_low_scores(SimpleNamespace(kind=kind), ["PER"] if flag == "spans" else []) is (flag is None)


def test_queues_and_the_screen(calibrated, planted_tags, tmp_path):
    data, _ = planted_tags
    first = told(calibrated, data)["ranked"][0]
    for form, suffix in (("prodigy", "jsonl"), ("label-studio", "json"), ("csv", "csv")):
        path = tmp_path / f"{form}.{suffix}"
        shown = ok(calib("audit", calibrated, data, "--top", 3, "--format", form, "-o", path)).text
        assert "most likely wrong first" in shown
        assert re.search(r"wrong label: \d+", shown)
        text = path.read_text()
        assert "wrong label" in text
        if form == "prodigy":
            task = json.loads(text.splitlines()[0])
            assert [span["label"] for span in task["spans"]] == [first["gold"]]
            assert task["meta"]["suggestion"] == first["suggestion"] != first["gold"]
        if form == "csv":
            rows = list(csv.DictReader(io.StringIO(text)))
            assert [rows[0]["label"], rows[0]["suggestion"], len(rows)] == [first["gold"], first["suggestion"], 3]
    assert audit(str(calibrated), data, top=2, silent=True)["ranked"][0]["focus"] == first["focus"]


def test_bad_input_ends_with_one_sentence(model, planted_tags, tmp_path):
    data, _ = planted_tags
    docs = docs_in(data)
    refuses(calib("audit", model, save_docs(tmp_path / "one.spacy", docs[:1])), says("C625"))
    refuses(calib("audit", model, data, "--component", "parser"), "no component 'parser'")
    bare = [Doc(doc.vocab, words=[token.text for token in doc]) for doc in docs]
    refuses(calib("audit", model, save_docs(tmp_path / "bare.spacy", bare)), "no gold tag annotation")
    refuses(calib("audit", model, tmp_path / "none.spacy"), "none.spacy")
