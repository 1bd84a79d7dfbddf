"""scripts/pretrain/sources.py: gold by other guidelines, and which sources may be fitted on."""

import pytest
from pretrain.sources import TAGS_OF, Source, accept_compatible
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

# Predicted and annotated part of speech and features, and whether these agree.
CASES = (
    ("PRON", "Number=Sing|Person=3", "PRON", "Emph=No|Number=Sing|Person=3|PronType=Prs", True),
    ("DET", "Definite=Def|Number=Plur", "DET", "Definite=Def|Gender=Fem|Number=Plur", True),
    ("NUM", "NumType=Card", "NUM", "", True),
    ("NOUN", "Gender=Masc", "NOUN", "Gender=Fem,Masc", True),
    ("NOUN", "Gender=Fem|Number=Sing", "NOUN", "Gender=Masc|Number=Sing", False),
    ("NOUN", "Number=Sing", "PROPN", "Number=Sing", False),
)


@pytest.mark.parametrize(("pos", "morph", "gold_pos", "gold_morph", "agrees"), CASES)
def test_gold_that_contradicts_no_feature_becomes_the_prediction(pos, morph, gold_pos, gold_morph, agrees):
    vocab = Vocab()
    predicted = Doc(vocab, words=["x"], pos=[pos], morphs=[morph])
    reference = Doc(vocab, words=["x"], pos=[gold_pos], morphs=[gold_morph])
    (example,) = accept_compatible([Example(predicted, reference)])
    token = example.reference[0]
    assert (token.pos_, str(token.morph)) == ((pos, morph) if agrees else (gold_pos, gold_morph))
    assert str(reference[0].morph) == gold_morph  # the gold of the caller stays
    assert example.predicted is predicted


def test_a_source_that_is_not_free_may_only_judge():
    with pytest.raises(SystemExit, match="CC BY-NC"):
        Source("x", "", "", "CC BY-NC-SA 4.0", list)
    assert Source("x", "", "", "CC BY-NC-SA 4.0", list, fitted=False).size > 1


def test_a_source_that_a_pipeline_was_trained_on_is_not_fitted_on():
    assert not [source for sources in TAGS_OF.values() for source in sources if source.trained and source.fitted]
