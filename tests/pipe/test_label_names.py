"""Names of labels on screens and in files: the gold's where a fit had a map, the pipeline's where a card has one."""

from types import SimpleNamespace

from spacy_calib.pipe.label_names import shown_keys, with_shown_names
from spacy_calib.sources.mapped import with_map
from spacy_calib.sources.ner.source import NerSource


def pipe_with(table, card=None):
    return SimpleNamespace(source=with_map(NerSource(), table), fit_info=SimpleNamespace(pretrained=card))


FITTED = pipe_with({"PER": "agent", "ORG": "agent", "LOC": "place", "DATE": "DATE"})


def test_labels_that_share_a_name_are_told_apart():
    assert shown_keys(FITTED) == {"PER": "agent (PER)", "ORG": "agent (ORG)", "LOC": "place"}
    assert shown_keys(pipe_with(None)) == {}
    assert shown_keys(pipe_with({"PER": "", "DATE": ""})) == {"PER": "", "DATE": ""}  # neither has scores


def test_with_a_card_a_name_of_its_gold_is_the_only_label_that_has_it():
    of_card = pipe_with({"PERSON": "PER", "GPE": "LOC", "FAC": "LOC", "ORG": "ORG", "DATE": ""}, {"card": "of English"})
    assert shown_keys(of_card) == {"PER": "PERSON", "DATE": ""}


def test_rows_cut_offs_targets_and_misses_have_the_names():
    table = {
        "rows": [{"key": "PER", "n": 1}, {"key": "all", "n": 2}],
        "cutoffs": {"PER": 0.5, "all": None},
        "targets": {"LOC": 0.7},
    }
    renamed = {
        "rows": [{"key": "agent (PER)", "n": 1}, {"key": "all", "n": 2}],
        "cutoffs": {"agent (PER)": 0.5, "all": None}, "targets": {"place": 0.7},
    }  # fmt: skip
    assert with_shown_names(FITTED, {**table, "misses": table}) == {**renamed, "misses": renamed}
    assert with_shown_names(FITTED, {"pipe": "calib", "targets": {}}) == {"pipe": "calib", "targets": {}}
