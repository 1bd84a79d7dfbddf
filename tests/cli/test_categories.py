"""Text categories from fit to every command: a document is a row."""

from __future__ import annotations

import pytest
from spacy.tokens import DocBin

from tests.categories import category_docs, revive_categorizer
from tests.cli.conftest import calib, refuses, save_docs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A categorizer (model), one of several labels (several), and gold for them. Not to be changed."""
    path = tmp_path_factory.mktemp("categories")
    revive_categorizer().to_disk(path / "model")
    revive_categorizer("textcat_multilabel").to_disk(path / "several")
    for name, seed in (("dev", 41), ("test", 42)):
        save_docs(path / f"{name}.spacy", category_docs(120, seed))
        save_docs(path / f"{name}_several.spacy", category_docs(120, seed, several=True))
    return path


@pytest.fixture(scope="module")
def fitted(folder):
    outcome = calib(
        "fit", folder / "model", folder / "dev.spacy", folder / "fitted", "--component", "textcat", "--method", "isotonic"
    )
    assert outcome.code == 0, outcome.text
    return folder / "fitted"


# Refusals


def changed(folder, tmp_path, change):
    from spacy.vocab import Vocab

    docs = list(DocBin().from_disk(folder / "dev.spacy").get_docs(Vocab()))
    for doc in docs:
        change(doc)
    return save_docs(tmp_path / "changed.spacy", docs)


def test_fit_refuses_gold_that_does_not_fit(folder, tmp_path):
    def fit(data):
        return calib("fit", folder / "model", data, tmp_path / "out", "--component", "textcat")

    both = changed(folder, tmp_path, lambda doc: doc.cats.update(film=1.0, music=1.0))
    refuses(fit(both), "has several categories with the highest value (film, music), but")
    foreign = changed(folder, tmp_path, lambda doc: setattr(doc, "cats", {"cinema": 1.0}))
    refuses(fit(foreign), "None of the gold categories in the data (cinema) is one of component 'textcat', which knows film,")
    unknown = changed(folder, tmp_path, lambda doc: doc.cats.update(dict.fromkeys(doc.cats, 0.0), cinema=1.0))
    refuses(fit(unknown), "None of the 1 gold labels in the data (cinema) is known to component 'textcat'")
    refuses(
        fit(changed(folder, tmp_path, lambda doc: setattr(doc, "cats", {}))), "no gold cats annotation for component 'textcat'"
    )
    assert not (tmp_path / "out").exists()
