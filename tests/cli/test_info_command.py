import pytest
import spacy

from spacy_calib.about import __version__
from spacy_calib.cli.info_command import _offsets_line, show_selection
from tests.cli.conftest import calib, json_of, ok, refuses
from tests.conftest import made_up_sentences


def test_info_says_what_the_pipe_holds(calibrated):
    outcome = ok(calib("info", calibrated))
    n_tokens = sum(map(len, made_up_sentences(120, 12)))
    for part in (
        "Component tagger (tag)",
        "Attributes Token._.calib_score, _raw, _scores; Doc._.calib",
        "Method isotonic (one map for each of 4 frequency groups)",
        "Threshold 0.01",
        f"120 sentences, {n_tokens} tokens",
        "Frequencies counted on the fit data",
        f"spacy-calib {__version__}, spacy {spacy.__version__}",
        "Errors by cross-validation (tags)",
    ):
        assert part in outcome.text


def test_info_as_json(calibrated):
    (name, held), *others = json_of("info", calibrated).items()
    assert (name, others) == ("calib", [])
    assert (held["component"], held["layer"], held["attr"]) == ("tagger", "tag", "calib")
    assert (held["threshold"], held["normalize"], held["source_found"]) == (0.01, False, True)
    counts = {}
    for sentence in made_up_sentences(120, 12):
        for _, tag in sentence:
            counts[tag] = counts.get(tag, 0) + 1
    assert {tag: n for group in held["groups"] for tag, n in group["tags"].items()} == counts
    assert sum(group["pairs"] for group in held["groups"]) == held["pairs"]
    assert [row["group"] for row in held["table"]] == ["all", *(group["group"] for group in held["groups"])]
    assert held["versions"]["spacy-calib"] == __version__


def test_many_tags_are_shown_in_part_and_named_in_full_on_request(model, dev, tmp_path):
    options = ["-C", "trainable_lemmatizer", "--groups", 1, "-m", "isotonic", "--silent"]
    ok(calib("fit", model, dev, tmp_path / "out", *options))
    labels = spacy.load(tmp_path / "out").get_pipe("calib").labels
    short, whole = calib("info", tmp_path / "out"), calib("info", tmp_path / "out", "--all")
    assert (short.code, whole.code) == (0, 0)
    assert f"Group 1 ({len(labels)} tags)" in whole.text
    assert "more" not in whole.text
    assert len(labels) <= 8 or f"and {len(labels) - 8} more" in short.text


def test_info_shows_a_pipe_whose_source_is_gone(calibrated, tmp_path):
    nlp = spacy.load(calibrated, exclude=["tagger"])
    nlp.to_disk(tmp_path / "bare")
    assert "tagger (tag), not in the pipeline" in ok(calib("info", tmp_path / "bare")).text
    assert json_of("info", tmp_path / "bare")["calib"]["source_found"] is False


def test_info_on_a_pipeline_without_a_fitted_pipe(model, tmp_path):
    refuses(calib("info", model), "no fitted calib pipe; it has: tok2vec, tagger")
    nlp = spacy.load(model)
    nlp.add_pipe("calib", after="tagger")
    nlp.to_disk(tmp_path / "unfitted")
    refuses(calib("info", tmp_path / "unfitted"), "no fitted calib pipe")


@pytest.mark.parametrize(("tags", "groups", "line"), [
    (2.5, None, "strength of tags 2.5"), (None, 4.0, "strength of groups 4"), (2.5, 4.0, "strength of tags 2.5, of groups 4"),
    (None, None, "no effect here"),
])  # fmt: skip
def test_tag_offsets_have_an_effect_if_tags_or_groups_have_one(tags, groups, line):
    assert _offsets_line({"strength": tags, "group_strength": groups}) == line


def test_info_on_a_recognizer(calibrated_ner):
    outcome, held = ok(calib("info", calibrated_ner)), json_of("info", calibrated_ner)["calib_ent"]
    spans = held["spans"]
    assert (held["component"], held["layer"], spans["event"]) == ("ner", "ner", "exact")
    assert set(spans["labels"]) == {"PER", "LOC", "ORG"}
    assert spans["table"][0]["pairs"] == spans["spans"]
    assert [group["group"] for group in held["groups"]][0] == "O"
    for part in (
        "Component ner (ner)",
        f"{spans['spans']:,} predicted entities, {spans['right']:,} right (event: exact)",
        "Errors by cross-validation (entities)",
        "Group O (1 tag): O",
    ):
        assert part in outcome.text


def test_all_candidates_are_shown_in_columns_as_wide_as_what_they_hold(capsys):
    trials = [
        {"candidate": f"candidate {i} with over thirty letters", "size": i, "loss": i / 10, "difference": i / 10, "error": 0.0}
        for i in range(8)
    ]  # fmt: skip
    left_out = [
        {"candidate": name, "why": why} for name, why in (("a", "too few pairs"), ("b", "too few pairs"), ("c", "one document"))
    ]
    show_selection({"documents": 9, "trials": trials, "chosen": trials[1]["candidate"], "left_out": left_out})
    printed = capsys.readouterr().out
    assert "Chosen by cross-validation over 9 documents" in printed
    lines = [line for line in printed.splitlines() if line.startswith(("Candidate", "candidate"))]
    assert len({len(line) for line in lines}) == 1
    assert [line.split()[1] for line in lines[1:]] == list("01234567")
    assert ["(chosen)" in line for line in lines[1:]] == [False, True] + 6 * [False]
    assert "Not compared: a; b (too few pairs)\nNot compared: c (one document)" in printed
