"""`spacy calib evaluate`: its table, its JSON, and the whole way from `fit` to a token's score in processes of their own."""

import json

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Corpus

from tests.cli.conftest import TAG_OF, calib, entity_docs, json_of, ok, refuses, save_docs, spacy_command, spacy_process

# srsly writes ten digits behind the point.
WRITTEN = 1e-9
# Sums over batches of another size differ in the last digits of float32.
FLOAT32 = 1e-5


TAGS = {*TAG_OF.values(), "PROPN", "X"}


def figures(path):
    return json.loads(path.read_text())


def scored_by_spacy(path, data):
    nlp = spacy.load(path)
    return nlp.evaluate(list(Corpus(data)(nlp)))


def leaves(value):
    if isinstance(value, dict):
        for one in value.values():
            yield from leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one)
    else:
        yield value


def check_against_spacy(table, metrics, prefix, tolerance):
    """The figures of a table are those of `spacy evaluate`."""
    rows = {row["group"]: row for row in table["errors"]}
    named = {
        "smce": rows["all"],
        "gmce": rows["mean"],
        **{name: table["scores"][name] for name in ("ece", "brier", "nll", "smece")},
    }
    for name, row in named.items():
        assert row["calibrated"] == pytest.approx(metrics[f"{prefix}_{name}"], abs=tolerance)
        assert row["raw"] == pytest.approx(metrics[f"{prefix}_{name}_raw"], abs=tolerance)
    for group, row in metrics[f"{prefix}_gmce_per_group"].items():
        assert rows[group]["calibrated"] == pytest.approx(row["gmce"], abs=tolerance)
        assert (rows[group]["pairs"], rows[group]["tags"]) == (row["pairs"], row["tags"])


def test_from_fit_to_a_score_in_a_process_of_its_own(model, dev, test_file, tmp_path):
    """Fit, evaluate and score; no --code anywhere."""
    fit = ok(calib("fit", model, dev, tmp_path / "calibrated", "--train-data", dev.parent / "train.spacy"))
    assert "Calibrated tagger on" in fit.text
    assert "counted on train.spacy" in fit.text

    ok(spacy_process("evaluate", "./calibrated", test_file, "--output", "metrics.json", cwd=tmp_path))
    metrics = figures(tmp_path / "metrics.json")
    ok(calib("evaluate", tmp_path / "calibrated", test_file, "--output", tmp_path / "table.json"))
    result = figures(tmp_path / "table.json")["calib"]
    whole = next(row for row in result["errors"] if row["group"] == "all")
    assert whole["calibrated"] == pytest.approx(metrics["calib_smce"], abs=WRITTEN)
    assert whole["raw"] == pytest.approx(metrics["calib_smce_raw"], abs=WRITTEN)
    assert result["accuracy"] == pytest.approx(metrics["tag_acc"], abs=WRITTEN)

    assert "counted on train.spacy" in ok(calib("info", tmp_path / "calibrated")).text

    nlp = spacy.load(tmp_path / "calibrated")
    doc = nlp("the old dog saw a duck .")
    assert all(type(token._.calib_score) is float for token in doc)


def test_the_json_holds_plain_numbers_that_agree_with_spacy_evaluate(calibrated, test_file, tmp_path):
    ok(calib("evaluate", calibrated, test_file, "--silent", "--output", tmp_path / "new" / "table.json"))
    result = figures(tmp_path / "new" / "table.json")["calib"]
    keys = (
        "accuracy accuracy_is bins by change component conventions errors layer misaligned never_right pairs scores seen tokens"
    )
    assert " ".join(sorted(result)) == f"{keys} weights_changed"
    assert all(type(leaf) in (str, bool, int, float, type(None)) for leaf in leaves(result))
    expected = scored_by_spacy(calibrated, test_file)
    assert all(
        type(leaf) in (int, float, type(None)) for key, value in expected.items() if "calib" in key for leaf in leaves(value)
    )
    check_against_spacy(result, expected, "calib", WRITTEN)
    rows = result["errors"]
    assert all(
        row["true_low"] <= row["true_high"] and 0 <= row["floor"] <= row["floor95"] for row in rows if row["raw"] is not None
    )


def test_all_adds_columns_and_their_explanation_but_no_figures_to_the_json(calibrated, test_file, tmp_path):
    texts = {}
    for name, options in (("short", ()), ("all", ("--all",))):
        texts[name] = ok(calib("evaluate", calibrated, test_file, "-o", tmp_path / f"{name}.json", *options)).text
    assert figures(tmp_path / "short.json") == figures(tmp_path / "all.json")
    assert {"debiased", "floor95"} <= set(figures(tmp_path / "all.json")["calib"]["errors"][0])
    assert "Group Tags Pairs Raw Calibrated 95 % interval Floor -" in texts["short"]
    assert "Group Tags Pairs Raw Calibrated Debiased 95 % interval Floor Floor 95 %" in texts["all"]
    for word in ("debiased", "Floor 95 %"):
        assert word in texts["all"]
        assert word not in texts["short"]


def test_the_explanation_of_several_pipes_is_printed_once(two_pipes, entity_test):
    lines = ok(calib("evaluate", two_pipes, entity_test)).text
    assert "calib (tagger)" in lines
    assert [lines.count(words) for words in ("A pair is one", "Raw, calibrated:", "95 % interval is for")] == [1, 1, 1]
    assert lines.index("A pair is one") > max(lines.rindex("calib (tagger)"), lines.rindex("calib_ent (ner)"))


def test_the_bins_are_those_of_the_fit(model, dev, test_file, tmp_path):
    ok(calib("fit", model, dev, tmp_path / "out", "--components.calib.scorer.n_bins", 4, "--silent", "-m", "isotonic"))
    result = json_of("evaluate", tmp_path / "out", test_file)["calib"]
    assert result["bins"] == 4
    by_spacy = scored_by_spacy(tmp_path / "out", test_file)["calib_smce_raw"]
    assert result["errors"][0]["raw"] == pytest.approx(by_spacy, abs=WRITTEN)


def test_documents_without_words_change_no_figure(model, calibrated, test_file, tmp_path):
    vocab = spacy.blank("xx").vocab
    folder = tmp_path / "gold"
    folder.mkdir()
    empty = [Doc(vocab), Doc(vocab, words=["  ", "\n"], spaces=[False, False], tags=["_SP", "_SP"])]
    (folder / "a.spacy").write_bytes(test_file.read_bytes())
    save_docs(folder / "b.spacy", empty)
    assert json_of("evaluate", calibrated, test_file) == json_of("evaluate", calibrated, folder)
    for name, data in (("words", test_file), ("all", folder)):
        ok(calib("fit", model, data, tmp_path / name, "-m", "isotonic", "--silent"))
    fits = [spacy.load(tmp_path / name).get_pipe("calib").tokens.maps.fits_ for name in ("words", "all")]
    assert fits[0] == fits[1]


def test_the_entity_figures_agree_with_spacy_evaluate(calibrated_ner, entity_test, tmp_path):
    result = json_of("evaluate", calibrated_ner, entity_test)["calib_ent"]
    entities = result["entities"]
    keys = "accepted accuracy bins by called change errors event flagged never_right pairs scores"
    assert " ".join(sorted(entities)) == f"{keys} tokens"
    assert (entities["event"], entities["bins"], result["component"]) == ("exact", 10, "ner")
    assert all(type(leaf) in (str, bool, int, float, type(None)) for leaf in leaves(result))

    ok(spacy_command("evaluate", calibrated_ner, entity_test, "--output", tmp_path / "metrics.json"))
    metrics = figures(tmp_path / "metrics.json")
    assert not any(name.startswith("calib_ent_token") for name in metrics)
    check_against_spacy(entities, metrics, "calib_ent", FLOAT32)
    # Of the predicted entities as many are right as the precision says: every token has gold here.
    assert entities["accuracy"] == pytest.approx(metrics["ents_p"], abs=WRITTEN)


def test_the_tables_of_tokens_and_of_entities_are_shown(calibrated_ner, entity_test, tmp_path):
    outcome = ok(calib("evaluate", calibrated_ner, entity_test, "-o", tmp_path / "table.json"))
    result = figures(tmp_path / "table.json")["calib_ent"]
    entities = result["entities"]
    first, _, second = outcome.text.partition("calib_ent: whole entities (event: exact)")
    assert "calib_ent (ner)" in first
    assert f"{result['tokens']:,} tokens, {result['pairs']:,} pairs" in first
    assert f"{entities['pairs']:,} predicted entities, {100 * entities['accuracy']:.2f} % right, 10 bins" in second
    assert "ECE (top label)" in first
    assert "ECE (top label)" not in second
    for text, table in ((first, result), (second, entities)):
        row = table["errors"][0]
        assert f"all (SMCE) {row['tags']} {row['pairs']:,} {row['raw']:.4f} {row['calibrated']:.4f}" in text
        brier = table["scores"]["brier"]
        assert f"Brier {brier['raw']:.4f} {brier['calibrated']:.4f}" in text
    firsts = [line.split()[0] for line in outcome.printed.splitlines() if line.strip()]
    at = [i for i, word in enumerate(firsts) if word == "all"]
    assert [firsts[i : i + 6] for i in at] == [["all", "O", "1", "2", "3", "mean"], ["all", "1", "2", "3", "mean", "Score"]]


def test_gold_without_a_predicted_entity_has_a_table_of_tokens_alone(calibrated_ner, tmp_path):
    nlp = spacy.load(calibrated_ner)
    docs = [doc for doc in entity_docs(200, 34) if not nlp(Doc(nlp.vocab, words=[token.text for token in doc])).ents]
    assert docs
    data = save_docs(tmp_path / "outside.spacy", docs)
    outcome = ok(calib("evaluate", calibrated_ner, data, "-o", tmp_path / "table.json"))
    assert "Nothing to evaluate: no entity was predicted where there is gold." in outcome.text
    result = figures(tmp_path / "table.json")["calib_ent"]
    assert result["tokens"] == sum(map(len, docs))
    assert result["entities"]["pairs"] == 0
    assert result["entities"]["accuracy"] is None
    assert result["entities"]["scores"]["brier"] == {"raw": None, "calibrated": None}


def test_the_component_that_is_read_is_missing(calibrated_ner, entity_test, tmp_path):
    """The data has gold: it is not the data that is at fault."""
    spacy.load(calibrated_ner, exclude=["ner"]).to_disk(tmp_path / "without")
    refuses(calib("evaluate", tmp_path / "without", entity_test, "--silent"), "has no component 'ner'; it has: tok2vec, tagger")


def test_calibrated_worse_than_raw_and_labels_that_are_never_right_are_said(ner_model, entity_test, tmp_path):
    """Fitted on gold in which every tag is another one, the scores of right tags are low; judged on that, no tag is right."""
    other = dict(zip(sorted(TAGS), [*sorted(TAGS)[1:], sorted(TAGS)[0]], strict=True))
    docs = entity_docs(60, 31)
    for token in (token for doc in docs for token in doc):
        token.tag_ = other[token.tag_]
    wrong = save_docs(tmp_path / "wrong.spacy", docs)
    ok(calib("fit", ner_model, wrong, tmp_path / "m", "-C", "tagger", "--method", "isotonic", "--silent"))
    outcome = calib("evaluate", tmp_path / "m", entity_test, "--output", tmp_path / "e.json")
    change = figures(tmp_path / "e.json")["calib"]["change"]["nll"]
    assert 0 < change["low"] < change["value"] < change["high"]
    assert (
        f"WORSE than raw ones on this data: log loss {change['value']:+.4f} (95 % interval {change['low']:+.4f}" in outcome.text
    )
    assert "Predicted and never right: " in calib("evaluate", tmp_path / "m", wrong).text
