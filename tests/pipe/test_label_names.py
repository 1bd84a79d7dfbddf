"""Names of labels on screens and in files: the gold's where a fit had a map, the pipeline's where a card has one."""

from types import SimpleNamespace

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.calibration.grouping.fixed import make_shared_grouping
from spacy_calib.calibration.recalibrators import Identity
from spacy_calib.errors import CalibError
from spacy_calib.pipe.component import Calibrator
from spacy_calib.pipe.label_names import match_labels, shown_keys, with_shown_names
from spacy_calib.sources.heads import SoftmaxSource
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


def morphologizer_on_gold(feats):
    """An unfitted pipe that reads a morphologizer of three labels, and an example whose gold has these features."""
    nlp = spacy.blank("xx")
    morphologizer = nlp.add_pipe("morphologizer")
    for label in ("Number=Plur|POS=NOUN", "Number=Sing|POS=NOUN", "POS=VERB"):
        morphologizer.add_label(label)
    gold = Doc(nlp.vocab, words=["Fish", "swim"], pos=["NOUN", "VERB"], morphs=[feats, ""])
    calib = Calibrator(nlp, source=SoftmaxSource("morphologizer"), grouping=make_shared_grouping(), recalibrator=Identity())
    return calib, [Example(nlp.make_doc("Fish swim"), gold)]


def test_a_map_renames_a_bundle_of_features_of_the_gold():
    calib, (example,) = morphologizer_on_gold("Case=Nom|Number=Sing")
    match_labels(calib, [example], gold_names={"Number=Sing|POS=NOUN": "Case=Nom|Number=Sing|POS=NOUN"})
    fish, swim = example.reference
    assert (str(fish.morph), fish.pos_, str(swim.morph), swim.pos_) == ("Number=Sing", "NOUN", "", "VERB")


def test_a_map_that_merges_labels_is_for_fit():
    calib, examples = morphologizer_on_gold("Case=Nom|Number=Sing")
    table = dict.fromkeys(("Number=Plur|POS=NOUN", "Number=Sing|POS=NOUN"), "POS=NOUN") | {"POS=VERB": "POS=VERB"}
    with pytest.raises(CalibError, match=r"no effect on Number=Plur\|POS=NOUN=POS=NOUN, .* `calib fit --map`"):
        match_labels(calib, examples, gold_names=table)
