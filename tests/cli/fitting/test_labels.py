import json

import pytest
import spacy
from spacy.tokens import Doc, Span

from tests.cli.conftest import calib, docs_in, entity_docs, fitted_to, json_of, ok, refuses, save_docs
from tests.sentences import says

RENAMED = {"PER": "xPER", "LOC": "xLOC", "ORG": "xORG"}
MAP = ",".join(f"{label}={other}" for label, other in RENAMED.items())


def renamed(n, seed, names):
    docs = entity_docs(n, seed)
    for doc in docs:
        kept = [Span(doc, ent.start, ent.end, names[ent.label_]) for ent in doc.ents if names[ent.label_]]
        doc.set_ents(kept, default="outside")
    return docs


@pytest.fixture(scope="module")
def other_scheme(tmp_path_factory):
    """dev.spacy and test.spacy of the entity tests with other names for their labels; merged.spacy: two of them are one, one is none."""
    folder = tmp_path_factory.mktemp("other_scheme")
    save_docs(folder / "dev.spacy", renamed(120, 22, RENAMED))
    save_docs(folder / "test.spacy", renamed(120, 23, RENAMED))
    save_docs(folder / "merged.spacy", renamed(120, 22, {"PER": "agent", "ORG": "agent", "LOC": ""}))
    return folder


@pytest.fixture(scope="module")
def mapped(ner_model, other_scheme, tmp_path_factory):
    path = tmp_path_factory.mktemp("mapped") / "pipeline"
    fitted = ok(calib("fit", ner_model, other_scheme / "dev.spacy", path, "-C", "ner", "-m", "isotonic", "--map", MAP))
    assert "does not know" not in fitted.text
    return path


def test_another_scheme_is_refused_with_both_label_sets_and_a_map(ner_model, other_scheme, tmp_path):
    outcome = calib("fit", ner_model, other_scheme / "dev.spacy", tmp_path / "out", "--component", "ner")
    refuses(outcome, "100.0 % of the gold labels are unknown to component 'ner'")
    for part in ("xPER", "it knows O, ", "LOC for xLOC (", "--allow-unknown", "PER=xPER", "ORG=xORG"):
        assert part in outcome.text
    assert not (tmp_path / "out").exists()


def test_a_renamed_scheme_is_calibrated_like_the_own_one(calibrated_ner, mapped, entity_test, other_scheme):
    """Only the names differ: every figure of every command is the same."""
    tables = {}
    for name, model, data in (("own", calibrated_ner, entity_test), ("mapped", mapped, other_scheme / "test.spacy")):
        for command, *options in (("evaluate",), ("threshold", "--precision", 0.5), ("expect",)):
            tables[name, command] = json_of(command, model, data, *options)
    own, other = (tables[name, "evaluate"]["calib_ent"] for name in ("own", "mapped"))
    assert [row["pairs"] for row in own["errors"]] == [row["pairs"] for row in other["errors"]]
    for one, two in ((own, other), (own["entities"], other["entities"])):
        assert [row["calibrated"] for row in one["errors"]] == pytest.approx(
            [row["calibrated"] for row in two["errors"]], abs=1e-5
        )
        assert one["accuracy"] == pytest.approx(two["accuracy"])
    assert tables["own", "threshold"]["cutoffs"] == pytest.approx(tables["mapped", "threshold"]["cutoffs"], abs=1e-5)
    assert tables["own", "expect"]["entities"]["f"] == pytest.approx(tables["mapped", "expect"]["entities"]["f"], abs=1e-5)


def test_labels_with_one_counterpart_are_one_and_those_without_are_outside(ner_model, other_scheme, tmp_path):
    path = tmp_path / "merged"
    options = ["--component", "ner", "--map", "PER=agent,ORG=agent,LOC="]
    ok(calib("fit", ner_model, other_scheme / "merged.spacy", path, *options, "--silent", "-m", "isotonic"))
    nlp = spacy.load(path)
    assert nlp.get_pipe("calib_ent").lookup.labels() == ("O", "agent")
    docs = [nlp(Doc(nlp.vocab, words=[token.text for token in doc])) for doc in entity_docs(30, 25)]
    seen = {ent.label_: ent._.calib_score for doc in docs for ent in doc.ents}
    assert seen.get("LOC") is None
    assert seen["PER"] is not None
    assert all(set(doc._.calib_ent.tags) <= {"O", "agent"} for doc in docs)
    # The next fit keeps the map.
    again = (path, other_scheme / "merged.spacy", tmp_path / "again")
    ok(calib("fit", *again, "--component", "ner", "--silent", "-m", "isotonic"))
    assert spacy.load(tmp_path / "again").get_pipe("calib_ent").lookup.labels() == ("O", "agent")
    ok(calib("info", path))
    for command, *more in (("evaluate", "-o", tmp_path / "r.html"), ("rank", "-n", 3)):
        ok(calib(command, path, other_scheme / "merged.spacy", *more, "--silent"))


def test_a_queue_says_it_too(calibrated_ner, tmp_path):
    gold = save_docs(tmp_path / "gold.spacy", renamed(60, 23, PLACES))
    assert (
        "have a gold label that 'ner' does not know (SITE; it predicts LOC for SITE ("
        in ok(calib("rank", calibrated_ner, gold)).text
    )


def test_names_that_another_pipe_has_for_the_component_need_no_map(mapped, other_scheme, tmp_path):
    """The new pipe stands beside the one that was fitted with a map: its gold is read by the same names."""
    ok(calib("fit", mapped, other_scheme / "dev.spacy", tmp_path / "out", "-C", "ner", "--attr", "second", "-m", "isotonic"))
    first, second = (spacy.load(tmp_path / "out").get_pipe(name).fit_info for name in ("calib_ent", "second"))
    assert second.unknown_gold == 0
    assert (second.label_map, second.tokens) == (None, first.tokens)


PLACES = {"PER": "PER", "ORG": "ORG", "LOC": "SITE"}


@pytest.mark.parametrize(
    ("command", "options"),
    [("fit", ("-C", "ner", "--allow-unknown", "-m", "identity")), ("adapt", ("--allow-unknown",)), ("evaluate", ()), ("threshold", ("--precision", 0.5))],
)  # fmt: skip
def test_a_type_with_an_unknown_name_is_reported_once(command, options, ner_model, calibrated_ner, tmp_path):
    """The gold says SITE for LOC: LOC is none of the types that it never uses; --map is an option of each of these commands."""
    gold = save_docs(tmp_path / "gold.spacy", renamed(60, 23, PLACES))
    model = ner_model if command == "fit" else calibrated_ner
    outputs = [[tmp_path / name] if command in ("fit", "adapt") else [] for name in ("out", "mapped")]
    outcome = ok(calib(command, model, gold, *outputs[0], *options))
    assert outcome.text.count("have a gold label that 'ner' does not know (SITE") == 1
    assert "count as misses; `fit --map` renames them" in outcome.text
    assert "never uses" not in outcome.text
    assert "does not know" not in ok(calib(command, model, gold, *outputs[1], *options, "--map", "LOC=SITE")).text


def test_a_type_without_a_counterpart_is_one_that_the_gold_never_uses(calibrated_ner, tmp_path):
    docs = renamed(60, 23, {"PER": "PER", "ORG": "ORG", "LOC": "LOC"})
    for doc in docs:
        doc.set_ents([ent for ent in doc.ents if ent.label_ != "LOC"], default="outside")
    gold = save_docs(tmp_path / "gold.spacy", docs)
    text = ok(calib("evaluate", calibrated_ner, gold)).text
    assert "have a type that the gold never uses (LOC" in text
    assert "does not know" not in text


def test_cut_offs_have_the_names_of_the_map_in_json_too(mapped, other_scheme, tmp_path):
    """In files, on the screen and in Python; the pipeline is written with its own labels, by which it looks them up."""
    arguments = ("threshold", mapped, other_scheme / "test.spacy", "--precision", 0.5, "--per", "label")
    outcome = ok(calib(*arguments, "-o", tmp_path / "cutoffs.json", "--apply", tmp_path / "applied"))
    result = json.loads((tmp_path / "cutoffs.json").read_text(encoding="utf8"))
    assert {row["key"] for row in result["rows"]} == set(result["cutoffs"]) == set(RENAMED.values())
    assert all(f" {name} " in outcome.text for name in RENAMED.values())
    cutoffs = spacy.load(tmp_path / "applied").get_pipe("calib_ent").spans.cutoffs.values
    assert {RENAMED[label]: cutoff for label, cutoff in cutoffs.items()} == result["cutoffs"]


TAGS = {"NOUN": "noun", "VERB": "verb"}


@pytest.fixture(scope="module")
def mapped_tags(model, dev, tmp_path_factory):
    """A tagger fitted on gold that calls two of its tags otherwise."""
    folder = tmp_path_factory.mktemp("mapped_tags")
    table = ",".join(f"{label}={name}" for label, name in TAGS.items())
    return fitted_to(folder / "fitted", model, retagged(dev, folder / "dev.spacy"), "--map", table)


def retagged(path, output):
    docs = docs_in(path)
    for token in (token for doc in docs for token in doc):
        token.tag_ = TAGS.get(token.tag_, token.tag_)
    return save_docs(output, docs)


def test_gold_tags_may_have_the_names_of_the_pipeline_of_its_map_or_of_an_option(calibrated, mapped_tags, test_file, tmp_path):
    """All say the same, in each command."""
    other, table = retagged(test_file, tmp_path / "other.spacy"), "NOUN=noun,VERB=verb"
    results = []
    for pipeline, gold, options in (
        (mapped_tags, other, ()),
        (mapped_tags, test_file, ()),
        (calibrated, test_file, ()),
        (calibrated, other, ("--map", table)),
    ):
        (numbers,) = json_of("evaluate", pipeline, gold, *options).values()
        results.append((numbers["accuracy"], numbers["scores"]["nll"]["calibrated"]))
        assert "does not know" not in ok(calib("adapt", pipeline, gold, tmp_path / "adapted", "--force", *options)).text
    assert results[0] == results[1]
    assert results[2] == results[3]
    assert results[0][0] == results[2][0] > 0.5
    merged = calib("evaluate", calibrated, other, "--map", "NOUN=noun,VERB=noun")
    refuses(merged, says("C168", entries="NOUN=noun, VERB=noun", component="tagger"))
