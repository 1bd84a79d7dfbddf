import pytest

from spacy_calib.calibration.fit_summaries import HeldOut
from tests.cli.conftest import TAG_OFFSETS, calib, docs_in, json_of, ok, refuses, save_docs, scaling, setting
from tests.cli.test_fit_command import loaded, some_docs
from tests.sentences import says

EVERYTHING = ["-m", "platt", scaling("Vector"), setting("normalize", "true"), TAG_OFFSETS]


def tokens_of(path, n=12):
    nlp = loaded(path)
    return [token for doc in nlp.pipe(some_docs(nlp, n)) for token in doc]


def info_of(path) -> dict:
    (info,) = json_of("info", path).values()
    return info


def test_a_fit_with_all_options_saves_each_of_them(model, dev, calibrated, tmp_path):
    path = tmp_path / "out"
    ok(calib("fit", model, dev, path, *EVERYTHING))
    block = loaded(path).config["components"]["calib"]
    assert block["recalibrator"]["@calib_recalibrators"] == "spacy-calib.Platt.v1"
    assert block["tag_offsets"] is True
    assert (block["normalize"], block["selection"]) == (True, None)
    for token in tokens_of(path):
        assert sum(token._.calib_scores.values()) == pytest.approx(1)
    info, plain = info_of(path), info_of(calibrated)
    assert (info["normalize"], info["selection"]) == (True, None)
    assert info["scaling"]["name"] == "spacy-calib.VectorScaling.v1"
    assert info["scaling"]["temperature"] > 0
    assert info["scaling"]["size"] > 5
    assert info["tag_offsets"]["strength"] is None or info["tag_offsets"]["strength"] > 0
    assert [plain[name] for name in ("scaling", "tag_offsets", "selection")] == [None] * 3


@pytest.mark.parametrize(("kind", "why"), [("Vector", "the scaling has a bias"), ("Temperature", "no tag differs")])
def test_tag_offsets_that_change_nothing_are_named(kind, why, model, dev, tmp_path):
    outcome = calib("fit", model, dev, tmp_path / "out", TAG_OFFSETS, scaling(kind))
    pooling = loaded(tmp_path / "out").get_pipe("calib").tokens.maps.offsets_
    useless = not pooling.tags.values.any() and not pooling.groups.values.any()
    assert useless or kind != "Vector"
    assert (f"The tag offsets change nothing: all are 0, as {why}" in outcome.text) == useless


def test_the_default_chooses_end_to_end(model, dev, test_file, tmp_path):
    outcome = ok(calib("fit", model, dev, tmp_path / "out", setting("normalize", "true")))
    info = info_of(tmp_path / "out")
    selection = info["selection"]
    assert (
        f"Chosen among {len(selection['trials'])}: {selection['chosen']} (`spacy calib info` shows the table)" in outcome.text
    )
    tried = {trial["candidate"] for trial in selection["trials"]}
    assert {"raw scores", "vector scaling", "context", "context after vector scaling", "isotonic, 1 group"} < tried
    assert (info["scaling"] is not None, info["context"]["kept"]) == (
        selection["chosen"].endswith("vector scaling"),
        selection["chosen"].startswith("context"),
    )
    assert info["tag_offsets"] is None
    assert selection["chosen"] == selection["trials"][0]["candidate"]
    assert (selection["documents"], info["normalize"]) == (120, True)
    # Whatever was chosen, the scores are judged by the groups of the grouping (of few tags there are four).
    assert [row["group"] for row in info["table"]] == ["all", "1", "2", "3", "4"]
    assert len(info["groups"]) == 4
    shown = calib("info", tmp_path / "out", "--all").text
    assert f"{selection['chosen']} (chosen)" in shown
    assert "Chosen by cross-validation over 120 documents" in shown
    for trial in selection["trials"]:
        assert trial["candidate"] in shown
    block = loaded(tmp_path / "out").config["components"]["calib"]
    assert block["selection"] == {"methods": ["isotonic"], "n_groups": [1, 5]}
    tokens = tokens_of(tmp_path / "out")
    assert all(sum(token._.calib_scores.values()) == pytest.approx(1) for token in tokens)
    ok(calib("evaluate", tmp_path / "out", test_file, "--silent"))


def test_of_few_documents_the_default_tries_the_scaling_alone(model, dev, tmp_path):
    few = save_docs(tmp_path / "few.spacy", docs_in(dev)[:9])
    assert "Chosen among 2: vector scaling" in ok(calib("fit", model, few, tmp_path / "out")).text
    info = info_of(tmp_path / "out")
    assert (info["method"], info["tag_offsets"]) == ("spacy-calib.Identity.v1", None)
    assert (info["scaling"]["name"], info["context"]["kept"]) == ("spacy-calib.VectorScaling.v1", False)
    assert {row["fallback"] for row in info["table"][1:]} == {"one for all tags"}
    assert "Chosen by cross-validation over 9 documents" in calib("info", tmp_path / "out").text


def judged(monkeypatch, *figures):
    """Whatever is fitted is found to do so on held-out parts."""
    monkeypatch.setattr("spacy_calib.pipe.fitting.evaluate_held_out", lambda *_: HeldOut(*figures, 0.0, 0.0, 0.0))


def test_a_fit_that_is_worse_than_raw_is_refused_and_written_with_always(model, dev, tmp_path, monkeypatch):
    judged(monkeypatch, 0.288, 0.999, 0.2, 88)
    options = ("--method", "isotonic", "--groups", 5)
    refused = calib("fit", model, dev, tmp_path / "out", *options)
    refuses(refused, says("C130", method="Isotonic", n=88, rows="tokens", calibrated=0.999, raw=0.288))
    refuses(refused, "write it all the same with --always")
    assert not (tmp_path / "out").exists()
    words = " ".join(ok(calib("fit", model, dev, tmp_path / "out", *options, "--always")).text.split())
    assert "calibrated scores are worse than raw ones: log loss 0.9990, raw 0.2880" in words
    assert len(info_of(tmp_path / "out")["groups"]) > 1


def test_a_fit_that_is_not_clearly_better_is_warned_of_with_the_numbers(model, dev, tmp_path, monkeypatch):
    judged(monkeypatch, 0.288, 0.28, 0.0051, 300)
    words = " ".join(calib("fit", model, dev, tmp_path / "out", "--method", "platt").text.split())
    assert (
        "By cross-validation on these 300 tokens calibrated scores are not clearly better than raw ones: log loss 0.2800, raw 0.2880"
        in words
    )
    monkeypatch.undo()
    words = calib("fit", model, dev, tmp_path / "out", "--method", "platt", "--force").text
    assert "clearly better" not in words
    held_out = info_of(tmp_path / "out")["held_out"]
    assert held_out["verdict"] == "better"
    assert held_out["calibrated"] < held_out["raw"] - 2 * held_out["error"]
