import pytest

from spacy_calib.calibration.fit_summaries import HeldOut
from tests.cli.conftest import TAG_OFFSETS, calib, docs_in, json_of, ok, refuses, scaling, setting
from tests.cli.test_fit_command import loaded, some_docs
from tests.sentences import says

EVERYTHING = ["-m", "platt", scaling("Vector"), setting("normalize", "true"), TAG_OFFSETS]


@pytest.fixture(scope="module")
def fit_with_all_options(model, dev, tmp_path_factory):
    """(the outcome of a fit with all the options, its output). Not to be changed."""
    path = tmp_path_factory.mktemp("all_options") / "out"
    outcome = ok(calib("fit", model, dev, path, *EVERYTHING))
    return outcome, path


def tokens_of(path, n=12):
    nlp = loaded(path)
    return [token for doc in nlp.pipe(some_docs(nlp, n)) for token in doc]


def info_of(path) -> dict:
    (info,) = json_of("info", path).values()
    return info


def test_a_fit_with_all_options_saves_each_of_them(fit_with_all_options):
    _, path = fit_with_all_options
    block = loaded(path).config["components"]["calib"]
    assert block["recalibrator"]["@calib_recalibrators"] == "spacy-calib.Platt.v1"
    assert block["tag_offsets"] is True
    assert (block["normalize"], block["selection"]) == (True, None)
    for token in tokens_of(path):
        assert sum(token._.calib_scores.values()) == pytest.approx(1)


@pytest.mark.parametrize(("kind", "why"), [("Vector", "the scaling has a bias"), ("Temperature", "no tag differs")])
def test_tag_offsets_that_change_nothing_are_named(kind, why, model, dev, tmp_path):
    outcome = calib("fit", model, dev, tmp_path / "out", TAG_OFFSETS, scaling(kind))
    pooling = loaded(tmp_path / "out").get_pipe("calib").tokens.maps.offsets_
    useless = not pooling.tags.values.any() and not pooling.groups.values.any()
    assert useless or kind != "Vector"
    assert (f"The tag offsets change nothing: all are 0, as {why}" in outcome.text) == useless


def test_info_as_json(fit_with_all_options, calibrated):
    info = info_of(fit_with_all_options[1])
    assert (info["normalize"], info["selection"]) == (True, None)
    assert info["scaling"]["name"] == "spacy-calib.VectorScaling.v1"
    assert info["scaling"]["temperature"] > 0
    assert info["scaling"]["size"] > 5
    assert info["tag_offsets"]["strength"] is None or info["tag_offsets"]["strength"] > 0
    plain = info_of(calibrated)
    assert [plain[name] for name in ("scaling", "tag_offsets", "selection")] == [None] * 3


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
    from spacy.tokens import DocBin

    few = DocBin(docs=docs_in(dev)[:9])
    few.to_disk(tmp_path / "few.spacy")
    outcome = ok(calib("fit", model, tmp_path / "few.spacy", tmp_path / "out"))
    assert "Chosen among 2: vector scaling" in " ".join(outcome.text.split())
    info = info_of(tmp_path / "out")
    assert (info["method"], info["tag_offsets"]) == ("spacy-calib.Identity.v1", None)
    assert (info["scaling"]["name"], info["context"]["kept"]) == ("spacy-calib.VectorScaling.v1", False)
    assert {row["fallback"] for row in info["table"][1:]} == {"one for all tags"}
    assert "Chosen by cross-validation over 9 documents" in " ".join(calib("info", tmp_path / "out").text.split())


def judged(monkeypatch, *figures):
    """Whatever is fitted is found to do so on held-out parts."""
    monkeypatch.setattr("spacy_calib.pipe.fitting.evaluate_held_out", lambda *_: HeldOut(*figures, 0.0, 0.0, 0.0))


def test_a_fit_that_is_worse_than_raw_by_cross_validation_is_refused(model, dev, tmp_path, monkeypatch):
    judged(monkeypatch, 0.288, 0.999, 0.2, 88)
    sentence = says("C130", method="Isotonic", n=88, rows="tokens", calibrated=0.999, raw=0.288)
    refuses(calib("fit", model, dev, tmp_path / "out", "--method", "isotonic"), sentence)
    assert not (tmp_path / "out").exists()


def test_always_writes_the_groups_of_the_paper_where_they_are_worse_than_raw_with_the_warning(
    model, dev, tmp_path, monkeypatch
):
    judged(monkeypatch, 0.288, 0.999, 0.2, 88)
    options = ("--method", "isotonic", "--groups", 5)
    refuses(calib("fit", model, dev, tmp_path / "out", *options), "write it all the same with --always")
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


@pytest.mark.parametrize(("options", "sentence"), [
    ([scaling("Platt")], "must be a function of the registry calib_scalings, but 'spacy-calib.PlattScaling.v1' is not registered"),
    ([setting("scaling.@calib_scalings", "")], "must be a function of the registry calib_scalings, but '' is not registered; registered are:"),
    ([setting("scaling", "")], "scaling is '', but must be a block with @calib_scalings"),
    ([setting("normalize", "kept")], "The settings of the pipe cannot be used: calib -> normalize: at root: 'kept' is not <class 'bool'>"),
    (["-m", "auto", scaling("Vector")], "Option --components.calib.scaling.@calib_scalings must be left out with --method auto, which chooses it"),
    (["-m", "auto", "--groups", 3], "Option --groups must be left out with --method auto, which chooses it, but 3 was given."),
    (["-m", "auto", TAG_OFFSETS], "Option --components.calib.tag_offsets must be left out with --method auto"),
])  # fmt: skip
def test_wrong_values(options, sentence, model, dev, tmp_path):
    refuses(calib("fit", model, dev, tmp_path / "out", *options), sentence)
    assert not (tmp_path / "out").exists()
