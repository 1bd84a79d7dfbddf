"""On two workers of one Java. One file: one session serves all tests. In test_killed.py executors are separate processes."""

import pickle
import shutil
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_calib import CalibError
from spacy_calib.pipe.pipeline import import_user_code
from spacy_calib.plugins.spark import TextScorer
from tests.conftest import gold_doc, made_up_sentences, revive
from tests.docs.pages import DOCS, Run, blocks_of
from tests.made import category_docs, fitted_categorizer
from tests.plugins.spark.conftest import TEXTS, by_text, expected

pd = pytest.importorskip("pandas", reason="pandas is not installed")


def scored(frame, *args, **kwargs):
    scorer = TextScorer(*args, **kwargs)
    return frame.mapInPandas(scorer, scorer.schema)


@pytest.mark.parametrize("unit", ["token", "sentence", "document"])
def test_scores_are_those_of_one_process_bit_for_bit(frame, calibrated, unit):
    rows = by_text(scored(frame, calibrated, id="number", unit=unit).collect())
    assert rows == expected(calibrated, unit)
    assert str(len(TEXTS)) not in rows  # the null text
    assert any(row["score"] is not None for found in rows.values() for row in found) == (unit == "token")


def test_rows_can_be_joined_to_the_texts(frame, calibrated):
    texts = frame.selectExpr("cast(number as string) as id", "text as whole")
    rows = scored(frame, calibrated, id="number").join(texts, "id").collect()
    assert len(rows) > len(TEXTS)
    assert all(row["whole"][row["start"] : row["end"]] == row["text"] for row in rows)


def test_categories_are_lists_of_structs(session, tmp_path):
    nlp = fitted_categorizer()
    nlp.to_disk(tmp_path / "model")
    texts = [doc.text for doc in category_docs(4, 3, vocab=nlp.vocab)]
    frame = session.createDataFrame([(f"t{i}", text) for i, text in enumerate(texts)], "id string, text string")
    for row in scored(frame, tmp_path / "model", unit="document").collect():
        doc = nlp(texts[int(row["id"][1:])])
        assert [cat["label"] for cat in row["cats"]] == list(doc._.calib_cats)
        assert [cat["score"] for cat in row["cats"]] == pytest.approx(list(doc._.calib_cats.values()), abs=1e-6)
        assert row["tokens"] == len(doc)


NOTED = """
import os
from spacy import Language

@Language.factory("notes_its_process")
def make(nlp, name, file: str):
    with open(file, "a") as noted:
        noted.write(f"{os.getpid()}\\n")
    return lambda doc: doc
"""


def test_the_pipeline_is_loaded_once_by_each_process(frame, calibrated, tmp_path):
    """However Spark spreads the eight tasks over its processes: each that loads the pipeline notes its number."""
    code, model, noted = tmp_path / "noted.py", tmp_path / "model", tmp_path / "noted.txt"
    code.write_text(NOTED)
    import_user_code(code)
    nlp = spacy.load(calibrated)
    nlp.add_pipe("notes_its_process", config={"file": str(noted)})
    nlp.to_disk(model)
    noted.unlink()
    for _ in range(2):
        assert scored(frame, str(model), id="number", code=str(code)).count() > 0
    processes = noted.read_text().split()
    assert len(set(processes)) == len(processes) < 8


def test_a_pipeline_that_was_written_anew_is_loaded_anew(calibrated, tmp_path):
    path = Path(shutil.copytree(calibrated, tmp_path / "copy"))
    scorer = TextScorer(str(path))
    first, attrs = scorer._load()
    assert attrs == ("calib",)
    assert scorer._load()[0] is first
    first.to_disk(path)
    assert scorer._load()[0] is not first


def test_a_scorer_finds_the_pipeline_from_another_folder(calibrated, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(calibrated).parent)
    scorer = TextScorer(Path(calibrated).name)
    monkeypatch.chdir(tmp_path)
    (rows,) = pickle.loads(pickle.dumps(scorer))([pd.DataFrame({"text": ["the dog"], "id": ["a"]})])
    assert (rows["id"].tolist(), rows["text"].tolist()) == (["a", "a"], ["the", "dog"])


def test_the_page_runs(session, calibrated, trained_bytes, tmp_path, monkeypatch):
    """docs/guides/production.md, with what it calls yours."""
    gold = [gold_doc(spacy.blank("xx").vocab, sentence) for sentence in made_up_sentences(140, seed=12)]
    shutil.copytree(calibrated, tmp_path / "calibrated")
    DocBin(docs=gold).to_disk(tmp_path / "dev.spacy")
    revive(trained_bytes).to_disk(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    run = Run()
    for block in blocks_of(DOCS / "guides" / "production.md"):
        if block.noted("needs extra") not in ("ray", "dask", "ppi_py"):
            run.block(block)
    assert "scorer" in run.names


def refuses(code: str, match: str, call):
    with pytest.raises(CalibError, match=rf"(?s)\[{code}\] .*{match}"):
        call()


def test_what_cannot_be_scored_is_said_before_spark_begins(calibrated, trained_bytes, tmp_path):
    revive(trained_bytes).to_disk(tmp_path / "plain")
    refuses("C050", "Cannot load the pipeline 'nowhere'", lambda: TextScorer("nowhere"))
    refuses("C027", r"The pipeline has no fitted calib pipe", lambda: TextScorer(str(tmp_path / "plain")))
    refuses("C068", r"no fitted calib pipe with the prefix 'sure'", lambda: TextScorer(calibrated, attr="sure"))
    refuses("C001", "unit must be one of token, .*'word'", lambda: TextScorer(calibrated, unit="word"))
    refuses("C446", "no scores of the unit 'entity', only of tokens", lambda: TextScorer(calibrated, unit="entity"))


@pytest.mark.parametrize(("columns", "code", "match"), [
    ({"body": ["a"], "id": ["a"]}, "C452", "no column 'text'; it has: body, id"),
    ({"text": ["a"]}, "C452", "no column 'id'; it has: text"),
    ({"text": [1], "id": ["a"]}, "C453", "'text' must be of the type string, but it is int64"),
    # Spark gives whole numbers of which one is null as fractions: ids above 2 ** 53 would be those of other texts.
    ({"text": ["a", "b"], "id": [2**53 + 1, None]}, "C453", "'id' must be of the type string, but it is float64"),
])  # fmt: skip
def test_columns_that_cannot_be_read(calibrated, columns, code, match):
    refuses(code, match, lambda: list(TextScorer(calibrated)([pd.DataFrame(columns)])))


def test_null_texts_and_ids(calibrated):
    batch = pd.DataFrame({"text": ["the dog", None, "a cat"], "id": ["a", "b", None]})
    (rows,) = TextScorer(calibrated)([batch])
    assert rows["id"].tolist() == ["a", "a", None, None]
