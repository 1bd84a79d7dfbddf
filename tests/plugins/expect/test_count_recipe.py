"""The recipe of docs/guides/production.md for a number of labels, run on texts whose gold is known."""

import pytest
import srsly

from tests.cli.conftest import docs_in, save_docs
from tests.docs.pages import DOCS, Run, blocks_of


def test_the_interval_contains_the_gold_number(calibrated, test_file, tmp_path, monkeypatch):
    pytest.importorskip("ppi_py", reason="ppi_py is not installed: pip install ppi-python")
    docs = docs_in(test_file)
    save_docs(tmp_path / "labelled.spacy", docs[:30])
    srsly.write_jsonl(tmp_path / "texts.jsonl", [{"text": doc.text} for doc in docs[30:]])
    (tmp_path / "calibrated").symlink_to(calibrated)
    monkeypatch.chdir(tmp_path)
    (block,) = (block for block in blocks_of(DOCS / "guides" / "production.md") if block.noted("needs extra") == "ppi_py")
    run = Run()
    run.block(block)
    names, n_nouns = run.names, sum(token.tag_ == "NOUN" for doc in docs[30:] for token in doc)
    assert names["low"] <= n_nouns <= names["high"]
    assert names["gold"].sum() == sum(token.tag_ == "NOUN" for doc in docs[:30] for token in doc)
    assert names["low"] < names["sums"].sum() < names["high"]
    assert names["high"] - names["low"] < n_nouns
