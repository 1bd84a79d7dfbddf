"""Which calib pipe is meant: the decision, case by case."""

import pytest

from spacy_calib.cli.shared.choose_pipe import Candidate, choose
from spacy_calib.errors import CalibError

TAGS = Candidate("calib", "calib", "tagger", ("token", "sentence", "document"), "tag")
ENTITIES = Candidate("calib_ent", "calib_ent", "ner", ("entity", "token", "sentence", "document"), "ner")
TEXTS = Candidate("topics", "topics", "textcat", ("document",), "cats")
SECOND = Candidate("calib_again", "again", "ner", ENTITIES.units, "ner")
EXTERNAL = Candidate("scores", "scores", "", ("token",), "tag")

# (pipes, what is asked, names of the chosen pipes, beginning of the reason)
CHOSEN = [
    ([TAGS], {}, ["calib"], ""),
    ([TAGS], {"with_gold": []}, ["calib"], ""),  # its own check says what is missing
    ([TAGS, ENTITIES], {"component": "ner"}, ["calib_ent"], ""),
    ([TAGS, ENTITIES], {"component": "calib"}, ["calib"], ""),
    ([ENTITIES, SECOND], {"component": "again"}, ["calib_again"], ""),
    ([TAGS, ENTITIES], {"component": "tagger", "with_gold": ["calib_ent"]}, ["calib"], ""),  # options are above evidence
    (
        [TAGS, ENTITIES],
        {"with_gold": ["calib_ent"]},
        ["calib_ent"],
        "The gold is for 'ner', so the pipe is 'calib_ent' (--component tagger for 'calib')",
    ),
    ([TAGS, ENTITIES], {"unit": "entity"}, ["calib_ent"], "--unit entity is for 'ner'"),
    ([TAGS, ENTITIES], {"unit": "token"}, ["calib"], "--unit token is for 'tagger'"),
    ([TAGS, ENTITIES, TEXTS], {"unit": "document"}, ["topics"], "--unit document is for 'textcat'"),
    ([TAGS, ENTITIES], {"unit": "entity", "flag": "--not-accepted"}, ["calib_ent"], "--not-accepted is for 'ner'"),
    ([TAGS, ENTITIES], {"with_gold": ["calib", "calib_ent"], "unit": "entity"}, ["calib_ent"], "--unit entity is for 'ner'"),
    ([TAGS, ENTITIES], {"allow_many": True}, ["calib", "calib_ent"], ""),
    ([TAGS, ENTITIES], {"allow_many": True, "with_gold": ["calib", "calib_ent"]}, ["calib", "calib_ent"], ""),
    (
        [TAGS, ENTITIES, TEXTS],
        {"allow_many": True, "with_gold": ["calib", "topics"]},
        ["calib", "topics"],
        "Left out, as the data has no gold for it: 'calib_ent' (ner of 'ner')",
    ),
    ([ENTITIES, SECOND], {"allow_many": True, "component": "ner"}, ["calib_ent", "calib_again"], ""),
]
REFUSED = [
    ([TAGS, ENTITIES], {}, "choose one: --component tagger (tag) or --component ner (ner)."),
    ([TAGS, ENTITIES], {"with_gold": ["calib", "calib_ent"]}, "Several calib pipes are possible, 'calib' and 'calib_ent'"),
    ([TAGS, ENTITIES], {"unit": "sentence"}, "choose one: --component tagger (tag) or --component ner (ner)."),
    ([ENTITIES, SECOND], {"component": "ner"}, "choose one: --component calib_ent (ner) or --component again (ner)."),
    ([TAGS, EXTERNAL], {}, "choose one: --component tagger (tag) or --component scores (tag)."),
    ([TAGS, ENTITIES], {"with_gold": []}, "no gold annotation for any calibrated component (tag for tagger, ner for ner)"),
    (
        [TAGS, ENTITIES],
        {"component": "parser"},
        "no fitted calib pipe for the component or prefix 'parser'; calibrated are: tagger (calib), ner (calib_ent).",
    ),
]


@pytest.mark.parametrize(("pipes", "asked", "names", "why"), CHOSEN)
def test_the_pipe_is_chosen_by_option_then_by_gold_then_by_unit(pipes, asked, names, why):
    chosen, reason = choose(pipes, **asked)
    assert [pipe.name for pipe in chosen] == names
    assert reason.startswith(why)
    assert bool(reason) == bool(why)


@pytest.mark.parametrize(("pipes", "asked", "sentence"), REFUSED)
def test_what_cannot_be_decided_is_refused_with_the_options(pipes, asked, sentence):
    with pytest.raises(CalibError) as error:
        choose(pipes, **asked)
    assert sentence in error.value.message
