"""The last lines of `spacy calib fit`: the command that evaluates the fit."""

import shlex

from tests.cli.conftest import calib, ok


def last_command(outcome):
    *_, before, line = outcome.printed.splitlines()
    assert before == "Next, evaluate it on GOLD that is not in this fit:"
    return shlex.split(line)


def test_the_command_runs_as_printed(model, dev, test_file, tmp_path):
    output = tmp_path / "a fit"
    words = last_command(ok(calib("fit", model, dev, output, "-m", "isotonic")))
    assert words == ["python", "-m", "spacy", "calib", "evaluate", str(output), "GOLD"]
    assert "calib (tagger)" in ok(calib(*words[4:-1], test_file)).text


def test_options_that_other_gold_needs_too_are_in_it(ner_model, entity_dev, entity_test, tmp_path):
    options = ["-C", "ner", "--map", "PER=PER,LOC=LOC,ORG=ORG", "-G"]
    words = last_command(ok(calib("fit", ner_model, entity_dev, tmp_path / "out", "-m", "isotonic", *options)))
    shared = ["--map", "PER=PER,LOC=LOC,ORG=ORG", "--gold-preproc"]
    assert words[5:] == [str(tmp_path / "out"), "GOLD", *shared]
    ok(calib(*words[4:6], entity_test, *words[7:]))
