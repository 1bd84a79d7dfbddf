"""`spacy calib select`: batches from unlabelled text, through the real command line."""

from __future__ import annotations

import json
import os
import shutil
import sys

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_calib.plugins.review.select_command import select as select_batch
from tests.cli.conftest import annotated, calib, docs_in, json_of, ok, refuses, save_docs, save_gold
from tests.cli.test_documents import N_ARTICLES
from tests.conftest import made_up_sentences
from tests.sentences import says


@pytest.fixture(scope="session")
def pool(tmp_path_factory):
    """40 documents of two sentences with sentence starts and nothing else; one text stands twice. Not to be changed."""
    nlp = spacy.blank("xx")
    sentences = [[word for word, _ in sentence] for sentence in made_up_sentences(80, seed=31)]
    docs = []
    for first, second in zip(sentences[::2], sentences[1::2], strict=True):
        starts = [True, *[False] * (len(first) - 1), True, *[False] * (len(second) - 1)]
        docs.append(Doc(nlp.vocab, words=first + second, sent_starts=starts, user_data={"id": len(docs)}))
    path = tmp_path_factory.mktemp("pool") / "pool.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


@pytest.fixture(scope="module")
def calibrated(model, dev, tmp_path_factory):
    """The fitted pipeline without its sentence recognizer: the sentences are those of the pool."""
    folder = tmp_path_factory.mktemp("tagging")
    spacy.load(model, exclude=["senter"]).to_disk(folder / "model")
    ok(calib("fit", folder / "model", dev, folder / "calibrated", "--silent"))
    return folder / "calibrated"


def select(model, pool, *options):
    return json_of("select", model, pool, *options)


def test_the_least_confident_token_of_each_sentence(calibrated, pool):
    result = select(calibrated, pool, "--n", 10)
    predicted, golds = annotated(calibrated, pool), docs_in(pool)
    by_text = {}
    for doc, gold in zip(predicted, golds, strict=True):
        for sentence in gold.sents:
            score = max(1 - token._.calib_score for token in doc[sentence.start : sentence.end])
            text = sentence.text.strip()  # in another Doc the same sentence may have another score
            by_text[text] = max(by_text.get(text, (0, 0)), (score, len(sentence)))
    order = sorted(by_text.values(), key=lambda one: (-one[0], one[1]))
    assert [row["priority"] for row in result["rows"]] == pytest.approx([score for score, _ in order[:10]])
    assert [row["words"] for row in result["rows"]] == [words for _, words in order[:10]]
    for row in result["rows"]:
        token = predicted[row["doc"]][row["start"] + row["reason"]["token"]]
        assert (token.text, token.tag_) == (row["reason"]["word"], row["reason"]["label"])
        assert token._.calib_score == pytest.approx(row["reason"]["probability"]) == pytest.approx(1 - row["priority"])
        alternatives = {tag: pytest.approx(p) for tag, p in row["reason"]["alternatives"].items()}
        assert token._.calib_scores.items() >= alternatives.items()
    assert result["pool"]["units"] == 80
    assert result["batch"]["words"] == sum(row["words"] for row in result["rows"])
    assert result["pool"]["expected_errors"] == pytest.approx(sum(1 - t._.calib_score for doc in predicted for t in doc))


def test_a_budget_in_words_is_spent_where_a_word_brings_most(calibrated, pool):
    by_word = select(calibrated, pool, "--order", "expected-errors", "--max-words", 20)
    by_sentence = select(calibrated, pool, "--order", "expected-errors")
    assert by_word["per_word"]
    assert not by_sentence["per_word"]
    assert by_word["batch"]["words"] <= 20
    for result, words in ((by_word, True), (by_sentence, False)):
        for row in result["rows"]:
            assert row["priority"] == pytest.approx(row["expected_errors"] / (row["words"] if words else 1))


def test_the_rarest_tags_are_hunted(calibrated, pool):
    pipe = spacy.load(calibrated).get_pipe("calib")
    rarest = pipe.labels[int(np.argmin(pipe.tokens.maps.groups.counts))]
    result = select(calibrated, pool, "--order", "rare-tag", "--tag", rarest, "--n", 4)
    assert result["tags"] == [rarest]
    assert {row["reason"]["tag"] for row in result["rows"]} == {rarest}
    predicted = annotated(calibrated, pool)
    for row in result["rows"]:
        misses = [1 - t._.calib_scores.get(rarest, 0.0) for t in predicted[row["doc"]][row["start"] : row["end"]]]
        assert row["priority"] == pytest.approx(1 - np.prod(misses))


def test_documents_to_adapt_to_are_one_of_each_part(calibrated, pool, tmp_path):
    every = select(calibrated, pool, "--for", "adapt", "--n", 100)
    assert (every["for"], every["order"], every["unit"], every["batch"]["units"]) == ("adapt", "spread", "document", 40)
    for row in every["rows"]:
        assert row["priority"] == pytest.approx(row["expected_errors"] / row["words"])
        assert row["sentence"] is None
    # The shortest ones, of a tenth of the words, are left out of a smaller batch.
    by_words = sorted(row["words"] for row in every["rows"])
    least = by_words[int(np.searchsorted(np.cumsum(by_words), sum(by_words) / 10))]
    order = sorted(row["priority"] for row in every["rows"] if row["words"] >= least)
    size, over = divmod(len(order), 4)
    batches = [select(calibrated, pool, "--for", "adapt", "--n", 4, "--seed", seed)["rows"] for seed in (1, 1, 2)]
    for rows in batches:
        assert all(row["words"] >= least for row in rows)
        for place, score in enumerate(sorted(row["priority"] for row in rows)):
            # Those over, which no part holds, may stand anywhere between them.
            assert place * size <= order.index(score) < (place + 1) * size + over
    assert batches[0] == batches[1] != batches[2]

    path = tmp_path / "batch.spacy"
    outcome = calib("select", calibrated, pool, "--for", "adapt", "--output", path)
    assert "cut into 10 equal parts" in " ".join(outcome.text.split())
    assert len(docs_in(path)) == 10
    more = select(calibrated, pool, "--for", "adapt", "--n", 30, "--exclude", path)
    first = {row["text"] for row in select(calibrated, pool, "--for", "adapt")["rows"]}
    assert {row["text"] for row in more["rows"]} == {row["text"] for row in every["rows"]} - first


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "spacy", "json"])
def test_a_batch_is_left_out_of_the_next_one(calibrated, pool, tmp_path, suffix):
    path = tmp_path / f"batch.{suffix}"
    first = select(calibrated, pool, "--n", 6, "--output", path)
    if suffix == "json":
        assert json.loads(path.read_text(encoding="utf8")) == first
        return
    second = select(calibrated, pool, "--n", 6, "--exclude", path)
    assert second["excluded"] >= 6
    assert not {row["text"] for row in first["rows"]} & {row["text"] for row in second["rows"]}
    both = select(calibrated, pool, "--n", 12)
    assert [row["text"] for row in both["rows"]] == [row["text"] for row in first["rows"] + second["rows"]]


def test_docs_to_correct(calibrated, pool, tmp_path):
    path = tmp_path / "batch.spacy"
    rows = select(calibrated, pool, "--n", 6, "--output", path)["rows"]
    predicted = annotated(calibrated, pool)
    for doc, row in zip(docs_in(path), rows, strict=True):
        source = predicted[row["doc"]][row["start"] : row["end"]]
        assert [token.tag_ for token in doc] == [token.tag_ for token in source]
        assert [token.text for token in doc] == [token.text for token in source]
        assert [t._.calib_score for t in doc] == pytest.approx([t._.calib_score for t in source], abs=1e-6)
        assert doc.user_data["id"] == row["doc"]


def test_entities(calibrated_ner, entity_test, tmp_path):
    path = tmp_path / "batch.spacy"
    result = select(calibrated_ner, entity_test, "--order", "rare-tag", "--tag", "ORG", "--n", 5, "--output", path)
    docs = docs_in(path)
    for doc, row in zip(docs, result["rows"], strict=True):
        assert row["reason"]["tag"] == "ORG"
        found = [(ent.start_char, ent.end_char, ent.label_) for ent in doc.ents]
        assert found == [(one["start"], one["end"], one["label"]) for one in row["marks"]]
        assert [ent._.calib_score for ent in doc.ents] == pytest.approx([one["score"] for one in row["marks"]], abs=1e-6)


def test_categorized_spans_come_with_their_sentence(calibrated_spancat, span_gold, tmp_path):
    path = tmp_path / "batch.spacy"
    rows = select(calibrated_spancat, span_gold / "test.spacy", "--n", 5, "--unit", "document", "--output", path)["rows"]
    docs = docs_in(path)
    for doc, row in zip(docs, rows, strict=True):
        found = {(span.start_char, span.end_char, span.label_) for span in doc.spans["sc"]}
        assert found >= {(one["start"], one["end"], one["label"]) for one in row["marks"]}
        attrs = doc.spans["sc"].attrs
        assert [len(attrs[name]) for name in ("scores", "calib_scores")] == [len(doc.spans["sc"])] * 2
    assert any(row["marks"] for row in rows)


def test_what_is_printed(calibrated, pool, tmp_path):
    outcome = ok(calib("select", calibrated, pool, "--n", 30, "--output", tmp_path / "batch.csv"))
    assert "... and 10 more" in outcome.text
    assert "Pool: 80 sentences of 40 documents" in outcome.text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--order", "length"), "Option --order must be one of least-confident"),
        (("--unit", "word"), "Option --unit must be one of sentence, document"),
        (("--n", 0), "Option --top must be at least 1, but 0 was given"),
        (("--max-words", 0), "Option --max-words must be at least 1"),
        (("--per-doc", 0), "Option --per-doc must be at least 1"),
        (("--seed", -1), "Option --seed must be at least 0"),
        (("--tag", "ADJ"), "Option --tag must be left out unless --order is rare-tag, but ADJ was given"),
        (("--unit", "document", "--per-doc", 1), "Option --per-doc must be left out with --unit document"),
        (("--for", "fun"), "Option --for must be one of train, adapt"),
        (("--for", "adapt", "--order", "margin"), "Option --order must be left out with --for adapt, which samples documents"),
        (("--for", "adapt", "--max-words", 9), "Option --max-words must be left out with --for adapt"),
        (("--for", "adapt", "--per-doc", 1), "Option --per-doc must be left out with --for adapt"),
        (("--for", "adapt", "--tag", "ADJ"), "Option --tag must be left out unless --order is rare-tag"),
        (("--for", "adapt", "--unit", "sentence"), "Option --unit must be document with --for adapt"),
        (("--output", "batch.xlsx"), "Option --output must be a file that ends in .json, .jsonl, .csv, .spacy"),
        (
            ("--order", "rare-tag", "--tag", "ADJ", "--tag", "XYZ"),
            "The pipe 'calib' has no tag 'XYZ'; name one that it has: ADJ",
        ),
        (("--order", "rare-tag"), says("C093", share=0.01)),
        (("--max-words", 1), "Every sentence that could be chosen has more words than the 1 of --max-words"),
        (("--exclude", "nowhere.csv"), "Cannot read the texts in nowhere.csv"),
        (("--exclude", "nowhere.jsonl"), "Data not found: nowhere.jsonl"),
        (("--attr", "other"), "The pipeline has no fitted calib pipe with the prefix 'other'"),
    ],
)
def test_refusals(calibrated, pool, options, sentence):
    refuses(calib("select", calibrated, pool, "--silent", *options), sentence)


def test_pipelines_and_pools_that_are_none(model, calibrated, tmp_path):
    refuses(calib("select", model, save_gold(tmp_path / "two.spacy", 2, seed=2)), "The pipeline has no fitted calib pipe")
    (tmp_path / "two.spacy").unlink()
    refuses(calib("select", calibrated, tmp_path), says("C073"))
    gold = save_gold(tmp_path / "one.spacy", 1, seed=1)
    assert len(select(calibrated, gold)["rows"]) == 1
    refuses(calib("select", calibrated, save_docs(tmp_path / "none.spacy", [])), says("C052"))


def test_sentences_of_labelled_texts_are_labelled(calibrated, model, pool, tmp_path):
    """Wherever the pipeline sees sentences begin: a text is labelled as a whole."""
    texts = [" ".join(token.text for token in doc) for doc in docs_in(pool)]
    (tmp_path / "pool.txt").write_text("\n".join(texts))
    (tmp_path / "labelled.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts[5:]))
    left = select(calibrated, tmp_path / "pool.txt", "--exclude", tmp_path / "labelled.jsonl", "--n", 100)
    assert {row["doc"] for row in left["rows"]} <= set(range(5))
    assert left["excluded"] == left["pool"]["units"] - sum(row["doc"] < 5 for row in left["rows"]) > 0


def test_nothing_labelled_yet(calibrated, pool, tmp_path):
    (tmp_path / "labelled.jsonl").touch()
    outcome = ok(calib("select", calibrated, pool, "--exclude", tmp_path / "labelled.jsonl"))
    assert "0 sentences of the pool are labelled already" in outcome.text
    assert select(calibrated, pool)["excluded"] is None


def test_a_batch_of_docs_says_where_its_sentences_came_from(calibrated, tmp_path):
    (tmp_path / "pool.jsonl").write_text('{"text": ""}\n{"text": "the dog runs .", "id": 5}\n')
    select(calibrated, tmp_path / "pool.jsonl", "--output", tmp_path / "batch.spacy")
    (doc,) = docs_in(tmp_path / "batch.spacy")
    assert doc.user_data["calib_origin"] == {"line": 2, "id": 5}


def test_sentences_of_a_word_or_two_are_left_out_unless_asked_for(calibrated, tmp_path):
    path = tmp_path / "pool.txt"
    path.write_text("------\nwww.example.org/x\n- - - -\nthe dog saw the cat .\nthe dog\n")
    few = select(calibrated, path, "--order", "margin")
    assert [row["text"] for row in few["rows"]] == ["the dog saw the cat ."]
    every = select(calibrated, path, "--order", "margin", "--min-words", 0)
    assert len(every["rows"]) == 5
    sentence = "none of the others has a scored token and 9 words (--min-words)"
    refuses(calib("select", calibrated, path, "--min-words", 9), sentence)
    refuses(calib("select", calibrated, path, "--min-words", -1), "Option --min-words must be at least 0")


@pytest.mark.skipif(sys.platform == "darwin", reason="the file system takes no such names")
def test_data_whose_name_is_not_utf8_goes_into_a_docbin(calibrated, test_file, tmp_path):
    data = tmp_path / os.fsdecode(b"caf\xe9.spacy")
    shutil.copy(test_file, data)
    select(calibrated, data, "--n", 3, "--output", tmp_path / "batch.spacy")
    assert len(DocBin().from_disk(tmp_path / "batch.spacy")) == 3


def test_select_spreads_the_batch_over_the_documents_that_the_key_names(calibrated, articles):
    rows = {
        name: select_batch(str(calibrated), articles, top=N_ARTICLES, per_doc=1, **options)["rows"]
        for name, options in (("sentences", {}), ("articles", {"doc_key": "article"}))
    }
    of_article = {name: {row["doc"] % N_ARTICLES for row in chosen} for name, chosen in rows.items()}
    assert len(of_article["articles"]) == N_ARTICLES > len(of_article["sentences"])
    ok(calib("select", calibrated, articles, "--doc-key", "article", "-n", 2))
    refuses(calib("select", calibrated, articles, "--doc-key", "chapter"), "nothing under 'chapter'")
