"""More gold beside DATA: `calib fit MODEL DATA OUTPUT --gold PATH`."""

import pytest
from spacy.language import Language
from spacy.tokens import DocBin

from tests.cli.conftest import CONTEXT, calib, json_of, ok, refuses, save_docs, save_gold


@pytest.fixture(scope="module")
def gold_files(tmp_path_factory):
    """A folder of two files, and a file."""
    folder = tmp_path_factory.mktemp("gold")
    (folder / "web").mkdir()
    save_gold(folder / "web" / "a.spacy", 40, seed=11)
    save_gold(folder / "web" / "b.spacy", 40, seed=12)
    save_gold(folder / "news.spacy", 60, seed=13)
    return folder / "web", folder / "news.spacy"


def test_all_documents_are_fitted_on_alike(model, gold_files, tmp_path):
    web, news = gold_files
    reports = [
        json_of("fit", model, *arguments, "--method", "isotonic")
        for arguments in (
            (web, tmp_path / "both", "--gold", news),
            (web / "a.spacy", tmp_path / "three", "--gold", web / "b.spacy", f"--gold={news}"),
        )
    ]
    assert [report["docs"] for report in reports] == [131, 131]  # nine texts are made up in two files, and count once
    assert reports[0]["table"] == reports[1]["table"]
    assert "sources" not in reports[0]
    reports = [ok(calib("evaluate", tmp_path / name, news, "--format", "json")).printed for name in ("both", "three")]
    assert reports[0] == reports[1]


def test_the_same_texts_with_other_gold_are_unknown_and_counted(model, gold_files, tmp_path):
    _, news = gold_files
    docs = list(DocBin().from_disk(news).get_docs(Language().vocab))
    lengths = {doc.text: len(doc) for doc in docs}  # a text that the file repeats is compared once
    for doc in docs:
        doc[0].tag_ = "OTHER"
    again = save_docs(tmp_path / "again.spacy", docs)
    outcome = ok(calib("fit", model, news, tmp_path / "out", "--gold", again, "--method", "isotonic"))
    assert f"annotators differ on {len(lengths)} of {sum(lengths.values())} tokens" in outcome.text
    assert "which are unknown and take no part" in outcome.text
    report = json_of("info", tmp_path / "out")["calib"]
    assert report["docs"] == len(docs)


def test_faults_are_one_sentence(model, gold_files, tmp_path):
    web, news = gold_files
    refuses(calib("fit", model, web, tmp_path / "out", "--gold", web.parent / "gone"), "gone")
    refuses(calib("fit", model, "--gold", web, "--gold", news), "Missing argument 'DATA'", code=2)
    refuses(calib("fit", model, web, "--gold", news), "Missing argument 'OUTPUT'", code=2)


def test_a_convention_is_reported_with_its_file(model, trained_bytes, tmp_path):
    from tests.cli.fitting.test_conventions import OTHER, SAID, save_overconfident

    save_overconfident(trained_bytes, tmp_path / "sure")
    data = save_gold(tmp_path / "data.spacy", 60, seed=11)
    docs = list(DocBin().from_disk(save_gold(tmp_path / "more.spacy", 150, seed=5)).get_docs(Language().vocab))
    for token in (token for doc in docs for token in doc if token.tag_ == SAID):
        token.tag_ = OTHER
    fitted = ok(
        calib("fit", tmp_path / "sure", data, tmp_path / "out", "--gold", save_docs(tmp_path / "b.spacy", docs), "-m", "platt")
    )
    assert "File" in fitted.text.split("Looks like another convention")[1]
    report = json_of("info", tmp_path / "out")["calib"]
    met = {(row["file"], row["said"], row["gold"]) for row in report["conventions"]}
    assert (1, SAID, OTHER) in met
    assert (0, SAID, OTHER) not in met


def test_info_shows_how_far_scores_shrink(model, gold_files, tmp_path):
    half = (CONTEXT, "--components.calib.context.shrink", "0.5")
    ok(calib("fit", model, gold_files[1], tmp_path / "out", "--method", "isotonic", *half))
    assert "Shrunk 0.5 of the way, in log-odds, to a line through the raw scores (" in ok(calib("info", tmp_path / "out")).text
