"""What a stranger reads of `fit` in the first minute: one plain verdict, and no abbreviation without its meaning."""

import json
import re

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from tests.cli.conftest import calib, ok, save_docs


@pytest.fixture(scope="module")
def fitted(model, dev, tmp_path_factory):
    """(what a fit of a tagger on gold with 12 unknown labels printed, its folder, the gold)."""
    folder = tmp_path_factory.mktemp("first_minute")
    vocab = spacy.blank("xx").vocab
    docs = list(DocBin().from_disk(dev).get_docs(vocab))
    docs.append(Doc(vocab, words=[f"w{i}" for i in range(12)], tags=[f"a-long-unknown-label-{i}" for i in range(12)]))
    gold = save_docs(folder / "gold.spacy", docs)
    return ok(calib("fit", model, gold, folder / "out", "--method", "isotonic")), folder / "out", gold


def figures(folder):
    """What the pipeline says of itself in meta.json, measured on held-out parts of the fit data."""
    return json.loads((folder / "meta.json").read_text())["performance"]


def judged(text):
    """The two figures of the verdict, which stands before everything else."""
    found = re.search(
        r"^[✔ℹ] The scores of '(\w+)' were off by ([\d.]+) on average, (.+?); calibrated, they are off by ([\d.]+) \((.+?)\)",
        text,
    )
    assert found is not None, text[:300]
    return found.groups()


def test_a_plain_verdict_of_what_was_held_out_comes_first(fitted):
    outcome, folder, _ = fitted
    name, raw, leaning, calibrated, of = judged(outcome.text)
    held = figures(folder)
    assert (name, leaning) == ("tagger", "mostly too low")
    assert (raw, calibrated) == (f"{held['calib_ece_raw']:.3f}", f"{held['calib_ece']:.3f}")
    assert float(raw) > 2 * float(calibrated)
    assert "the top label of each token" in of
    assert "by cross-validation" in of


def test_the_verdict_on_a_recognizer_is_of_its_entities(ner_model, entity_dev, tmp_path):
    outcome = ok(calib("fit", ner_model, entity_dev, tmp_path / "out", "-C", "ner", "-m", "isotonic"))
    name, raw, _, calibrated, of = judged(outcome.text)
    held = figures(tmp_path / "out")
    assert (name, raw, calibrated) == ("ner", f"{held['calib_ent_ece_raw']:.3f}", f"{held['calib_ent_ece']:.3f}")
    assert "predicted entities" in of


def test_scores_that_stay_as_they_are_are_called_so(model, dev, tmp_path):
    outcome = ok(calib("fit", model, dev, tmp_path / "out", "--method", "identity"))
    raw = figures(tmp_path / "out")["calib_ece_raw"]
    assert outcome.text.startswith(
        f"ℹ The scores of 'tagger' are off by {raw:.3f} on average, mostly too low, and stay as they are ("
    )


def test_info_repeats_the_verdict(fitted):
    outcome, folder, _ = fitted
    sentence = outcome.text.removeprefix("✔ ").split(" ✔ ")[0] + "."
    assert sentence in calib("info", folder).text


def test_unknown_labels_take_two_lines_and_info_tells_the_rest(fitted):
    outcome, folder, _ = fitted
    lines = re.sub(r"\x1b\[[0-9;]*m", "", outcome.printed).splitlines()
    (start,) = [i for i, line in enumerate(lines) if "12 tokens (" in line]
    end = next(i for i in range(start + 1, len(lines)) if not lines[i].strip() or re.search(r"[✔ℹ⚠]", lines[i]))
    assert end - start <= 2
    told = " ".join(lines[start:end])
    assert "have a gold label that 'tagger' does not know" in told
    assert "--map" in told
    assert "a-long-unknown-label-7" in calib("info", folder).text


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_abbreviations_stand_in_tables_with_a_legend_alone(command, fitted):
    outcome, folder, gold = fitted
    lines = (outcome if command == "fit" else ok(calib("evaluate", folder, gold))).printed.splitlines()
    table = [line for line in lines if re.match(r"all|mean", line)]
    others = " ".join(line for line in lines if line not in table)
    meanings = {"SMCE": "calibration error of all pairs", "GMCE": "of each group", "TFG-5 isotonic": "the method of Kranzlein"}
    if command == "evaluate":
        assert "TFG" not in others
        meanings = {"SMCE": "of all tags", "GMCE": "of each group"}
    for short, meaning in meanings.items():
        assert short in others
        assert others.rindex(meaning) > others.index("Score" if command == "fit" else "Group")
