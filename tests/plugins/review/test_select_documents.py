"""A batch is spread over the documents of the source."""

from __future__ import annotations

from spacy_calib.plugins.review.select_command import select
from tests.cli.conftest import calib, ok
from tests.cli.test_documents import N_ARTICLES, articles  # noqa: F401  (a fixture)


def test_select_spreads_the_batch_over_the_documents_that_the_key_names(calibrated, articles):  # noqa: F811
    rows = {
        name: select(str(calibrated), articles, top=N_ARTICLES, per_doc=1, **options)["rows"]
        for name, options in (("sentences", {}), ("articles", {"doc_key": "article"}))
    }
    of_article = {name: {row["doc"] % N_ARTICLES for row in chosen} for name, chosen in rows.items()}
    assert len(of_article["articles"]) == N_ARTICLES > len(of_article["sentences"])
    for command in ("select",):
        ok(calib(command, calibrated, articles, "--doc-key", "article", "-n", 2))
        wrong = calib(command, calibrated, articles, "--doc-key", "chapter")
        assert wrong.code == 1
        assert "nothing under 'chapter'" in wrong.text
