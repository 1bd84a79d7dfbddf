"""The advice of a sentence is typed, and works: by entry point and by what the pipeline is."""

from __future__ import annotations

import re
import shlex
import string

import pytest
import spacy
from spacy.tokens import Doc

import spacy_calib
from spacy_calib.cli import command_names, load_command
from spacy_calib.errors import CalibError
from spacy_calib.errors.advice import ADVICE, ANY, FITTED, PRETRAINED, PYTHON, STOCK, _added_advice, advise, entered_by

from .conftest import calib, docs_in, ok, save_docs

VALUES = {"component": "ner", "first": "ner", "map": "PERSON=PER"}
TABLES = (ADVICE, *_added_advice())
ROWS = [
    (key, entry, state, line) for table in TABLES for key, choices in table.items() for (entry, state), line in choices.items()
]


def options_of(command: str) -> set[str]:
    """All flags of a command."""
    return {
        str(flag)
        for one in load_command(command).parameters
        for flag in (one.info.default, *(one.info.param_decls or ()), one.word)
    }


def test_every_option_that_is_advised_is_one_of_the_command():
    """Of the command that is quoted, else of the one that the sentence is printed by."""
    for key, entry, _, line in ROWS:
        quoted = re.findall(r"`python -m spacy calib (\w+)([^`]*)`(?: [^;`]*?\((--\S+)\))?", line)
        for command, rest, more in quoted:
            flags = {word for word in [*rest.split(), more] if word.startswith("--")}
            assert flags <= options_of(command), (key, line)
        plain = re.sub(r"`[^`]*`( [^;`]*?\(--\S+\))?", "", line)
        flags = set(re.findall(r"--[a-z-]+", plain))
        if entry == PYTHON:
            assert not flags, (key, line)
        commands = [entry] if entry in command_names() else []
        for command in commands:
            assert flags <= options_of(command), (key, command, line)


def test_entries_and_states_are_known_and_values_are_given():
    for _, entry, state, line in ROWS:
        assert entry in (ANY, PYTHON, *command_names())
        assert state in (ANY, STOCK, PRETRAINED, FITTED)
        assert {field for _, field, _, _ in string.Formatter().parse(line) if field} <= set(VALUES)


@pytest.mark.parametrize(
    ("key", "entry", "state", "advice"),
    [
        ("C027", PYTHON, STOCK, "spacy_calib.fit(model, data, output)"),
        ("C027", "rank", STOCK, "python -m spacy calib fit MODEL DATA OUTPUT"),
        ("C031", "fit", STOCK, "(--map PERSON=PER)"),
        ("C031", "expect", PRETRAINED, "calib fit MODEL DATA OUTPUT --component ner --map PERSON=PER"),
        ("C031", PYTHON, STOCK, "label_map='PERSON=PER'"),
        ("C031", "adapt", FITTED, "(--map PERSON=PER)"),
        ("C031", "evaluate", STOCK, "(--map PERSON=PER)"),
        ("C164", "adapt", FITTED, "(--map PERSON=PER), or count them as misses with --allow-unknown"),
        ("C164", "evaluate", STOCK, "map its labels to those of the data (--map PERSON=PER)"),
        ("C164", PYTHON, FITTED, "allow_unknown=True"),
        ("C080", "evaluate", FITTED, "choose that: --component ner"),
        ("C080", "adapt", FITTED, "calib fit MODEL DATA OUTPUT --component ner"),
        ("second pass", "fit", STOCK, "leave out --second-pass"),
        ("second pass", "expect", FITTED, "fit it again without --second-pass"),
        ("second pass", PYTHON, PRETRAINED, "spacy_calib.pretrained(folder)"),
        ("second pass", PYTHON, FITTED, "spacy_calib.fit(folder, data, output)"),
    ],
)
def test_the_advice_is_that_of_the_entry_point_and_the_state(key, entry, state, advice):
    with entered_by(entry):
        assert advice in advise(key, state, **VALUES)


def test_a_pipeline_calibrated_from_a_card_is_not_advised_to_fit():
    for entry in (PYTHON, "expect", "rank"):
        with entered_by(entry):
            assert "fit" not in advise("second pass", PRETRAINED)


def command_in(text: str, **places: object) -> list[object]:
    """The first command that a sentence quotes, with paths in place of the words of its usage."""
    words = shlex.split(re.search(r"`python -m spacy calib ([^`]*)`", text)[1])
    return [places.get(word, word) for word in words]


@pytest.fixture
def entities_only(entity_dev, tmp_path):
    """Gold without tags."""
    docs = [
        Doc(
            doc.vocab,
            words=[token.text for token in doc],
            ents=[token.ent_iob_ + "-" * bool(token.ent_type_) + token.ent_type_ for token in doc],
        )
        for doc in docs_in(entity_dev)
    ]
    return save_docs(tmp_path / "entities.spacy", docs)


def test_typed_after_a_stock_pipeline_was_given(ner_model, entity_dev, tmp_path):
    """C027: `fit` as it stands there, for the gold that there is."""
    text = calib("adapt", ner_model, entity_dev, tmp_path / "x").text
    outcome = calib(
        *command_in(text, MODEL=ner_model, DATA=entity_dev, OUTPUT=tmp_path / "fitted"), "--silent", "-m", "isotonic"
    )
    ok(outcome)
    ok(calib("adapt", tmp_path / "fitted", entity_dev, tmp_path / "x", "--silent"))


def test_typed_after_gold_of_another_component(ner_model, calibrated_ner, entities_only, tmp_path):
    """C080: the option in `fit` and `evaluate`; in `adapt` of a pipeline without it, a fit."""
    text = calib("fit", ner_model, entities_only, tmp_path / "x").text
    option = re.search(r"choose that: (--component \w+)\.", text)[1].split()
    ok(calib("fit", ner_model, entities_only, tmp_path / "fitted", "--silent", "-m", "isotonic", *option))
    text = calib("evaluate", ner_model, entities_only).text
    ok(calib("evaluate", ner_model, entities_only, *re.search(r"choose that: (--component \w+)\.", text)[1].split()))
    with pytest.raises(CalibError, match="choose that in `spacy_calib.fit` \\(component='ner'\\)"):
        spacy_calib.fit(ner_model, entities_only, tmp_path / "y")
    tagged = tmp_path / "tagged"
    ok(calib("fit", ner_model, docs_file(tmp_path, calibrated_ner), tagged, "--silent", "--always", "-m", "isotonic"))
    text = calib("adapt", tagged, entities_only, tmp_path / "z").text
    ok(calib(*command_in(text, MODEL=tagged, DATA=entities_only, OUTPUT=tmp_path / "both"), "--silent", "-m", "isotonic"))
    ok(calib("adapt", tmp_path / "both", entities_only, tmp_path / "z", "--silent"))


def docs_file(tmp_path, model):
    """Gold tags for the tagger of a pipeline: what it says, every fifth tag another one."""
    nlp = spacy.load(model)
    docs = []
    for n in range(60):
        doc = nlp("the old dog sees Anna in Paris")
        tags = [token.tag_ for token in doc]
        tags[n % len(tags)] = tags[(n + 3) % len(tags)]
        docs.append(Doc(doc.vocab, words=[token.text for token in doc], tags=tags))
    return save_docs(tmp_path / "tags.spacy", docs)


def test_typed_after_other_labels(ner_model, calibrated_ner, entity_dev, tmp_path):
    """C031 and C164: --map in `fit` and `adapt`."""
    docs = docs_in(entity_dev)
    for doc in docs:
        doc.set_ents([spacy.tokens.Span(doc, ent.start, ent.end, f"X-{ent.label_}") for ent in doc.ents])
    gold = save_docs(tmp_path / "gold.spacy", docs)
    text = calib("fit", ner_model, gold, tmp_path / "x", "-C", "ner").text
    option = re.search(r"\((--map \S+)\)", text)[1].split()
    ok(calib("fit", ner_model, gold, tmp_path / "fitted", "-C", "ner", "--silent", "-m", "isotonic", *option))
    text = calib("adapt", calibrated_ner, gold, tmp_path / "x").text
    option = re.search(r"\((--map \S+)\)", text)[1].split()
    ok(calib("adapt", calibrated_ner, gold, tmp_path / "adapted", "--silent", *option))
    with pytest.raises(CalibError, match="label_map='"):
        spacy_calib.fit(ner_model, gold, tmp_path / "y", component="ner")


def test_typed_after_a_ruler_before_a_recognizer_that_runs_twice(ner_model, entity_dev, tmp_path):
    """C034: --second-pass is left out in `fit`; in Python the pipeline is saved and fitted from its folder."""

    def with_ruler(nlp):
        nlp.add_pipe("entity_ruler", before="ner").add_patterns([{"label": "ORG", "pattern": "Acme"}])
        return nlp

    ruled = tmp_path / "ruled"
    with_ruler(spacy.load(ner_model)).to_disk(ruled)
    text = calib("fit", ruled, entity_dev, tmp_path / "x", "-C", "ner", "--second-pass").text
    assert "leave out --second-pass" in text
    ok(calib("fit", ruled, entity_dev, tmp_path / "x", "-C", "ner", "--silent", "-m", "isotonic"))
    nlp = with_ruler(spacy.load(ner_model))
    pipe = nlp.add_pipe(
        "calib", config={"attr": "calib_e", "source": {"@calib_sources": "spacy-calib.Ner.v1", "component": "ner"}}
    )
    with pytest.raises(CalibError, match=r"save the pipeline, and with gold fit it from its folder \(`spacy_calib.fit"):
        pipe.fit([])
    nlp.remove_pipe("calib")
    nlp.to_disk(tmp_path / "saved")
    assert spacy_calib.fit(tmp_path / "saved", entity_dev, tmp_path / "y", component="ner").fitted


def test_typed_after_a_setting_that_is_no_option(ner_model, entity_dev, tmp_path):
    """C083: the dotted setting."""
    text = calib("fit", ner_model, entity_dev, tmp_path / "x", "-C", "ner", "--threshold", "0.02").text
    setting = re.search(r"give (--\S+) VALUE", text)[1]
    ok(calib("fit", ner_model, entity_dev, tmp_path / "x", "-C", "ner", "--silent", setting, "0.02"))
    assert spacy.load(tmp_path / "x").get_pipe("calib_ent").threshold == 0.02


def test_typed_after_answers_of_no_tool(ner_model, entity_test, tmp_path):
    """C082: the record that it shows."""
    own = tmp_path / "own.jsonl"
    own.write_text('{"sentence": "Anna left.", "names": [[0, 4, "PERSON"]]}')
    text = calib("fit", ner_model, own, tmp_path / "x", "-C", "ner").text
    shown = re.search(r"write your own gold as (\{.*\}), one text per line", text)[1]
    own.write_text(shown)
    text = calib("fit", ner_model, own, tmp_path / "x", "-C", "ner").text
    assert "should be an answer" not in text
    assert "pairs reach the threshold" in text  # read: PERSON is what other schemes call PER, and one text is too few


def test_the_call_that_c085_proposes_adds_the_pipe(ner_model):
    nlp = spacy.load(ner_model)
    with pytest.raises(CalibError) as error:
        nlp.add_pipe("calib_ent")
    expression = re.search(r"add a new one \((nlp\.add_pipe\(.*?\}\}\))\)", error.value.message)[1]
    eval(expression, {"nlp": nlp})
    assert "calib_ent" in nlp.pipe_names


def test_a_text_without_words_does_not_use_up_the_warning(ner_model):
    nlp = spacy.load(ner_model)
    nlp.add_pipe("calib", config={"source": {"component": "tagger"}})
    nlp("")
    with pytest.warns(UserWarning, match="CW01"):
        nlp("the dog")


def test_hyphens_in_the_name_of_a_package(monkeypatch, entity_test):
    monkeypatch.setattr("spacy.util.is_package", lambda name: True)
    with pytest.raises(CalibError, match="names with underscores; give en_core_web_xx"):
        spacy_calib.evaluate("en-core-web-xx", entity_test)
