"""`spacy calib fit` with scalings, normalization, sets and --method auto, and what `info` shows of them."""

from __future__ import annotations

from math import ceil

import pytest

from spacy_calib.calibration.fit_summaries import HeldOut
from tests.cli.conftest import TAG_OFFSETS, calib, docs_in, json_of, ok, refuses, scaling, setting
from tests.cli.test_fit_command import loaded, some_docs
from tests.conftest import made_up_sentences
from tests.sentences import says

SETS = (setting("sets.alpha", 0.3), setting("sets.coverage", "group"))
EVERYTHING = ["-m", "platt", scaling("Vector"), setting("normalize", "other"), *SETS, TAG_OFFSETS]


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


# What is written


def test_a_fit_with_all_options_saves_each_of_them(fit_with_all_options):
    _, path = fit_with_all_options
    block = loaded(path).config["components"]["calib"]
    assert block["recalibrator"]["@calib_recalibrators"] == "spacy-calib.Platt.v1"
    assert block["pooling"]["@calib_poolings"] == "spacy-calib.TagOffsets.v1"
    assert (block["normalize"], block["selection"]) == ("other", None)
    assert {name: block["sets"][name] for name in ("alpha", "coverage")} == {"alpha": 0.3, "coverage": "group"}
    tokens = tokens_of(path)
    for token in tokens:
        assert sum(token._.calib_scores.values()) <= 1 + 1e-9
        assert set(token._.calib_set) <= set(token._.calib_scores)
    assert len({token._.calib_set for token in tokens}) > 3


# What is printed


def strict_sets(coverage: str) -> tuple[object, ...]:
    """Options for sets that miss two in a thousand."""
    return "-m", "isotonic", setting("sets.alpha", 0.002), "--components.calib.sets.coverage", coverage


@pytest.mark.parametrize("coverage", ["marginal", "group", "tag"])
def test_fit_reports_how_many_tokens_have_no_set(coverage, model, dev, tmp_path):
    outcome = ok(calib("fit", model, dev, tmp_path / "out", *strict_sets(coverage), setting("threshold", 0.2)))
    nothing = [token._.calib_set is None for token in tokens_of(tmp_path / "out")]
    sets = info_of(tmp_path / "out")["sets"]
    share, unreached = sets["out_of_reach"], sets["unreached"]
    assert share > 0.5
    assert sum(nothing) / len(nothing) == pytest.approx(share, abs=0.2)
    assert len(unreached) == (sets["tags"] if coverage == "tag" else 0)
    named = f"{len(unreached)} tags (100.0 % of the fit tokens), too rare or scored too low: {', '.join(unreached)}, so there"
    what = named if unreached else f"{100 * share:.1f} % of the fit tokens, which"
    assert f"The coverage of the sets is not guaranteed for {what}" in outcome.text
    shown = calib("info", tmp_path / "out").text
    assert f"99.8 % of tokens, coverage: {coverage}; not guaranteed for " in shown


def test_sets_of_too_few_tokens_are_refused_and_those_of_few_warned_of(model, dev, tmp_path):
    n_tokens = sum(len(sentence) for sentence in made_up_sentences(120, 12))
    below, few = 0.9 / n_tokens, 5 / n_tokens
    refuses(
        calib("fit", model, dev, tmp_path / "out", setting("sets.alpha", below), "-m", "platt"),
        says("C131", alpha=below, n=n_tokens, least=ceil(1 / below) - 1),
    )
    assert not (tmp_path / "out").exists()
    outcome = ok(calib("fit", model, dev, tmp_path / "out", setting("sets.alpha", few), "-m", "platt"))
    assert f"The sets were fitted on {n_tokens:,} tokens, so their error rate may be far from " in outcome.text
    assert f"for which at least {ceil(10 / few):,}" in outcome.text
    outcome = ok(calib("fit", model, dev, tmp_path / "out", setting("sets.alpha", 0.1), "-m", "platt", "-F"))
    assert "error rate may be far" not in outcome.text


def test_tags_that_cannot_be_promised_are_named_and_void_no_set(model, dev, tmp_path):
    """Of some tags there are too few tokens, or too few above the threshold, for sets that miss 2 % of them."""
    settings = (setting("sets.alpha", 0.02), setting("sets.coverage", "tag"), setting("threshold", 0.2))
    outcome = calib("fit", model, dev, tmp_path / "out", *settings, "-m", "isotonic")
    sets = info_of(tmp_path / "out")["sets"]
    assert 0 < len(sets["unreached"]) < sets["tags"]
    assert 0 < sets["out_of_reach"] < 1
    assert None not in {token._.calib_set for token in tokens_of(tmp_path / "out")}
    named, others = ", ".join(sets["unreached"]), sets["tags"] - len(sets["unreached"])
    assert f"{named}; it holds for each of the other {others}" in outcome.text
    assert f"not guaranteed for {len(sets['unreached'])} tags: {named}" in calib("info", tmp_path / "out").text


@pytest.mark.parametrize("options", [[], ["--components.calib.sets.nonempty", "false"]])
def test_sets_above_the_error_rate_say_how_many_are_empty(options, model, dev, tmp_path):
    outcome = calib("fit", model, dev, tmp_path / "out", setting("sets.alpha", 0.6), "--method", "isotonic", *options)
    share = info_of(tmp_path / "out")["sets"]["empty"]
    assert share > 0.05
    sizes = [len(token._.calib_set) for token in tokens_of(tmp_path / "out", 120)]
    empty = f"{100 * share:.1f} % of the fit tokens"
    assert f"Sets that may miss 60 % need no label at all in {empty}: these " in outcome.text
    shown = calib("info", tmp_path / "out").text
    if options:
        assert sizes.count(0) / len(sizes) == pytest.approx(share, abs=0.1)
        assert f"the sets of {empty} are empty" in shown
    else:
        assert min(sizes) == 1
        assert f"the sets of {empty} contain only the top tag" in shown


@pytest.mark.parametrize(("kind", "why"), [("Vector", "the scaling has a bias"), ("Temperature", "no tag differs")])
def test_tag_offsets_that_change_nothing_are_named(kind, why, model, dev, tmp_path):
    outcome = calib("fit", model, dev, tmp_path / "out", TAG_OFFSETS, scaling(kind))
    pooling = loaded(tmp_path / "out").get_pipe("calib").tokens.maps.offsets
    useless = not pooling.tags_.values.any() and not pooling.groups_.values.any()
    assert useless or kind != "Vector"
    assert (f"The tag offsets change nothing: all are 0, as {why}" in outcome.text) == useless


def test_info_as_json(fit_with_all_options, calibrated):
    info = info_of(fit_with_all_options[1])
    assert (info["normalize"], info["selection"]) == ("other", None)
    n_tokens = info["tokens"]
    assert 0 < info["sets"].pop("empty") < 1
    assert info["sets"] == {
        "alpha": 0.3, "coverage": "group", "nonempty": True, "tokens": n_tokens, "tags": 5, "out_of_reach": 0.0, "unreached": [],
    }  # fmt: skip
    assert info["scaling"]["name"] == "spacy-calib.VectorScaling.v1"
    assert info["scaling"]["temperature"] > 0
    assert info["scaling"]["size"] > 5
    assert info["pooling"]["strength"] is None or info["pooling"]["strength"] > 0
    plain = info_of(calibrated)
    assert [plain[name] for name in ("scaling", "pooling", "sets", "selection")] == [None] * 4


# The method chosen on the data


def test_the_default_chooses_end_to_end(model, dev, test_file, tmp_path):
    options = [setting("sets.alpha", 0.3), setting("normalize", "true")]
    outcome = ok(calib("fit", model, dev, tmp_path / "out", *options))
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
    assert info["pooling"] is None
    assert selection["chosen"] == selection["trials"][0]["candidate"]
    assert (selection["documents"], info["sets"]["alpha"], info["normalize"]) == (120, 0.3, True)
    # Whatever was chosen, the scores are judged by the groups of the grouping (of few tags there are four).
    assert [row["group"] for row in info["table"]] == ["all", "1", "2", "3", "4"]
    assert len(info["groups"]) == 4
    shown = calib("info", tmp_path / "out", "--all").text
    assert f"{selection['chosen']} (chosen)" in shown
    assert "Chosen by cross-validation over 120 documents" in shown
    for trial in selection["trials"]:
        assert trial["candidate"] in shown
    block = loaded(tmp_path / "out").config["components"]["calib"]
    assert block["selection"]["@calib_selections"] == "spacy-calib.Auto.v1"
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
    assert (info["method"], info["pooling"]) == ("spacy-calib.Identity.v1", None)
    assert (info["scaling"]["name"], info["context"]["kept"]) == ("spacy-calib.VectorScaling.v1", False)
    assert {row["fallback"] for row in info["table"][1:]} == {"one for all tags"}
    assert "Chosen by cross-validation over 9 documents" in " ".join(calib("info", tmp_path / "out").text.split())


# Too little data for the method


def judged(monkeypatch, *figures):
    """Whatever is fitted is found to do so on held-out parts."""
    monkeypatch.setattr("spacy_calib.pipe.calibrator_fit.evaluate_held_out", lambda *_: HeldOut(*figures, 0.0, 0.0, 0.0))


def test_a_fit_that_is_worse_than_raw_by_cross_validation_is_refused(model, dev, tmp_path, monkeypatch):
    judged(monkeypatch, 0.288, 0.999, 0.2, 88)
    sentence = says("C130", method="Isotonic", n=88, rows="tokens", calibrated=0.999, raw=0.288)
    refuses(calib("fit", model, dev, tmp_path / "out", "--method", "isotonic"), sentence)
    assert not (tmp_path / "out").exists()


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


# What is refused


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([scaling("Platt")], "must be a function of the registry calib_scalings, but 'spacy-calib.PlattScaling.v1' is not registered"),
        ([setting("scaling.@calib_scalings", "")], "must be a function of the registry calib_scalings, but '' is not registered; registered are:"),
        ([setting("scaling", "")], "scaling is '', but must be a block with @calib_scalings"),
        ([setting("normalize", "kept")], "normalize must be true, false or \"other\", but 'kept' was given."),
        ([setting("sets.alpha", "few")], "alpha must be a number above 0 and below 1, but 'few' was given."),
        ([setting("sets.alpha", 0.1), setting("sets.coverage", "all")], "coverage must be one of marginal, group, tag, but 'all' was given."),
        (["-m", "auto", scaling("Vector")], "Option --components.calib.scaling.@calib_scalings must be left out with --method auto, which chooses it"),
        (["-m", "auto", "--groups", 3], "Option --groups must be left out with --method auto, which chooses it, but 3 was given."),
        (["-m", "auto", TAG_OFFSETS], "Option --components.calib.pooling.@calib_poolings must be left out with --method auto"),
    ],
)  # fmt: skip
def test_wrong_values(options, sentence, model, dev, tmp_path):
    refuses(calib("fit", model, dev, tmp_path / "out", *options), sentence)
    assert not (tmp_path / "out").exists()


CONFIG = """
[components]

[components.calib]
factory = "calib"
normalize = "other"

[components.calib.source]
@calib_sources = "spacy-calib.Softmax.v1"
component = "tagger"

[components.calib.scaling]
@calib_scalings = "spacy-calib.MatrixScaling.v1"
ridge = 50.0
bias_ridge = 2.0

[components.calib.sets]
@calib_sets = "spacy-calib.ConformalSets.v1"
alpha = 0.25
coverage = "tag"
min_tokens = 5
"""


def test_an_option_overrides_the_config(model, dev, tmp_path):
    (tmp_path / "fit.cfg").write_text(CONFIG)
    options = [scaling("Vector"), setting("normalize", "true"), setting("sets.alpha", 0.1), TAG_OFFSETS, "--silent"]
    ok(calib("fit", model, dev, tmp_path / "out", "--config", tmp_path / "fit.cfg", *options))
    pipe = loaded(tmp_path / "out").get_pipe("calib")
    assert pipe.tokens.scaling.registered == "spacy-calib.VectorScaling.v1"
    sets = pipe.tokens.sets
    assert (sets.alpha, sets.coverage, sets.min_tokens, pipe.normalize) == (0.1, "tag", 5, True)
    assert pipe.pooling is not None
