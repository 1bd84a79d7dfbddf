"""A batch is spread over the documents of the source."""

from __future__ import annotations

from spacy_calib.plugins.review.select_command import select
from tests.cli.conftest import calib, ok, refuses
from tests.cli.test_documents import N_ARTICLES, articles  # noqa: F401  (a fixture)


def test_select_spreads_the_batch_over_the_documents_that_the_key_names(calibrated, articles):  # noqa: F811
    rows = {
        name: select(str(calibrated), articles, top=N_ARTICLES, per_doc=1, **options)["rows"]
        for name, options in (("sentences", {}), ("articles", {"doc_key": "article"}))
    }
    of_article = {name: {row["doc"] % N_ARTICLES for row in chosen} for name, chosen in rows.items()}
    assert len(of_article["articles"]) == N_ARTICLES > len(of_article["sentences"])
    ok(calib("select", calibrated, articles, "--doc-key", "article", "-n", 2))
    refuses(calib("select", calibrated, articles, "--doc-key", "chapter"), "nothing under 'chapter'")
