"""`spacy calib rank` of unlabelled texts: batches from unlabelled text, through the real command line."""

import json

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from tests.cli.conftest import annotated, calib, docs_in, json_of, ok, refuses
from tests.conftest import made_up_sentences


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
    return json_of("rank", model, pool, *(() if "--to-adapt" in options else ("--unit", "sentence")), *options)


def test_documents_to_adapt_to_are_one_of_each_part(calibrated, pool, tmp_path):
    every = select(calibrated, pool, "--to-adapt", "--n", 100)
    assert (every["unit"], len(every["ranked"])) == ("document", 40)
    assert {row["sentence"] for row in every["ranked"]} == {None}
    # The shortest ones, of a tenth of the words, are left out of a smaller batch.
    by_words = sorted(row["words"] for row in every["ranked"])
    least = by_words[int(np.searchsorted(np.cumsum(by_words), sum(by_words) / 10))]
    order = sorted(row["priority"] for row in every["ranked"] if row["words"] >= least)
    size, over = divmod(len(order), 4)
    batches = [select(calibrated, pool, "--to-adapt", "--n", 4, "--seed", seed)["ranked"] for seed in (1, 1, 2)]
    for rows in batches:
        assert all(row["words"] >= least for row in rows)
        for place, score in enumerate(sorted(row["priority"] for row in rows)):
            # Those over, which no part holds, may stand anywhere between them.
            assert place * size <= order.index(score) < (place + 1) * size + over
    assert batches[0] == batches[1] != batches[2]

    path = tmp_path / "batch.spacy"
    calib("rank", calibrated, pool, "--to-adapt", "--output", path)
    assert len(docs_in(path)) == 10
    more = select(calibrated, pool, "--to-adapt", "--n", 30, "--exclude", path)
    first = {row["text"] for row in select(calibrated, pool, "--to-adapt")["ranked"]}
    assert {row["text"] for row in more["ranked"]} == {row["text"] for row in every["ranked"]} - first


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "json"])
def test_a_batch_is_left_out_of_the_next_one(calibrated, pool, tmp_path, suffix):
    path = tmp_path / f"batch.{suffix}"
    first = select(calibrated, pool, "--n", 6, "--output", path)
    if suffix == "json":
        assert json.loads(path.read_text(encoding="utf8")) == first
        return
    second = select(calibrated, pool, "--n", 6, "--exclude", path)
    assert second["excluded"] >= 6
    assert not {row["text"] for row in first["ranked"]} & {row["text"] for row in second["ranked"]}
    both = select(calibrated, pool, "--n", 12)
    assert [row["text"] for row in both["ranked"]] == [row["text"] for row in first["ranked"] + second["ranked"]]


def test_whole_docs_to_correct(calibrated, pool, tmp_path):
    path = tmp_path / "batch.spacy"
    rows = select(calibrated, pool, "--to-adapt", "--n", 6, "--output", path)["ranked"]
    predicted = annotated(calibrated, pool)
    for doc, row in zip(docs_in(path), rows, strict=True):
        source = predicted[row["doc"]]
        assert [token.tag_ for token in doc] == [token.tag_ for token in source]
        assert [token.text for token in doc] == [token.text for token in source]
        assert [t._.calib_score for t in doc] == pytest.approx([t._.calib_score for t in source], abs=1e-6)
        assert doc.user_data["id"] == row["doc"]


@pytest.mark.parametrize("unit", ["token", "sentence"])
def test_parts_of_docs_are_no_docs(calibrated, pool, tmp_path, unit):
    path = tmp_path / "batch.spacy"
    sentence = f"Option --output must be a file that ends in .jsonl for the unit {unit} (.spacy holds whole documents)"
    refuses(calib("rank", calibrated, pool, "--unit", unit, "--output", path), sentence)
    assert not path.exists()


@pytest.mark.parametrize("form", ["jsonl", "csv", "prodigy", "label-studio", "doccano", "argilla"])
def test_no_queue_holds_the_rest_of_a_doc(calibrated, tmp_path, form):
    """Neither the other sentence, nor the user data of the Doc, nor what the pipeline wrote there."""
    words = ["the", "Zquxville", "dog", "saw", "Qwertson", ".", "this", "old", "Wexduck", "eats", "Plomhere", "."]
    starts = [True, *[False] * 5, True, *[False] * 5]
    doc = Doc(spacy.blank("xx").vocab, words=words, sent_starts=starts, user_data={"note": "Vexnote", "origin": ["Vexplace"]})
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "pool.spacy")
    ok(calib("rank", calibrated, tmp_path / "pool.spacy", "--unit", "sentence", "--repeats", "--format", form,
             "--output", tmp_path / ("queue.csv" if form == "csv" else "queue.json"), "--n", 1))  # fmt: skip
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.name.startswith("queue."))
    halves = [[word.encode() for word in half if word.istitle()] for half in (words[:6], words[6:])]
    held = [[word in written for word in half] for half in halves]
    assert sorted(map(all, held)) == [False, True]
    assert not any(held[0 if all(held[1]) else 1])
    assert not [word for word in (b"Vexnote", b"Vexplace", b"user_data", b'"._."') if word in written]


def test_sentences_of_labelled_texts_are_labelled(calibrated, model, pool, tmp_path):
    """Wherever the pipeline sees sentences begin: a text is labelled as a whole."""
    texts = [" ".join(token.text for token in doc) for doc in docs_in(pool)]
    (tmp_path / "pool.txt").write_text("\n".join(texts))
    (tmp_path / "labelled.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts[5:]))
    left = select(calibrated, tmp_path / "pool.txt", "--exclude", tmp_path / "labelled.jsonl", "--n", 100)
    assert {row["doc"] for row in left["ranked"]} <= set(range(5))
    assert left["excluded"] > 0
    assert left["units"] == len(left["ranked"])  # figures are of what is shown


def test_a_batch_of_docs_says_where_it_came_from(calibrated, tmp_path):
    (tmp_path / "pool.jsonl").write_text('{"text": ""}\n{"text": "the dog runs .", "id": 5}\n')
    select(calibrated, tmp_path / "pool.jsonl", "--to-adapt", "--output", tmp_path / "batch.spacy")
    (doc,) = docs_in(tmp_path / "batch.spacy")
    assert doc.user_data["calib_origin"] == {"line": 2, "id": 5}
