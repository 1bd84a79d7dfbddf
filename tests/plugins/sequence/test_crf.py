"""The component `calib_crf` and its layer: training, saving, and what its marginals are."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Token
from spacy.training import Example

from spacy_calib.errors import CalibError
from spacy_calib.plugins.sequence.crf import add_gradient, make_chain_model, potentials_of
from spacy_calib.plugins.sequence.inference.sums import sum_chains
from spacy_calib.plugins.sequence.source import ChainSource
from tests.plugins.sequence.trained import SMALL, TAGS, WORDS, tagged, with_entities


def trained(examples_of=lambda nlp: [tagged(nlp)], steps=30, **config):
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("calib_crf", config={"model": SMALL, **config})
    examples = examples_of(nlp)
    optimizer = nlp.initialize(lambda: examples)
    losses = []
    for _ in range(steps):
        losses.append(nlp.update(examples, sgd=optimizer)["calib_crf"])
    return nlp, pipe, examples, losses


@pytest.mark.parametrize("loss", ["likelihood", "perceptron", "hinge", "passive_aggressive"])
def test_every_loss_learns_the_tags(loss):
    nlp, _, _, losses = trained(loss=loss)
    doc = nlp(Doc(nlp.vocab, words=WORDS))
    assert [token.tag_ for token in doc] == TAGS
    assert losses[-1] < max(losses)


def test_entities_obey_biluo():
    nlp, pipe, examples, _ = trained(with_entities, target="ents")
    doc = nlp(examples[0].reference.text)
    assert [(span.text, span.label_) for span in doc.ents] == [("New York", "LOC"), ("Ann", "PER")]
    marginals = sum_chains(pipe.chains([Doc(nlp.vocab, words=["New", "York"])])[0]).by_sequence()[0]
    of = dict(zip(pipe.labels, marginals.T, strict=True))
    assert (
        of["I-LOC"][0] == of["L-PER"][0] == of["B-LOC"][1] == 0
    )  # none begins inside an entity, or ends before its last token
    assert nlp.evaluate(examples)["ents_f"] == 1


def test_the_source_sums_the_tags_of_a_type_and_knows_whole_entities():
    nlp, pipe, examples, _ = trained(with_entities, target="ents")
    doc = nlp(examples[0].reference.text)
    source = ChainSource()
    found = source.read(pipe, [doc, nlp("Ann ran")])
    assert source.labels(pipe) == ("O", "LOC", "PER")
    table = found.marginals_above(0.0)
    assert np.bincount(table.rows, weights=table.scores) == pytest.approx(np.ones(7))
    assert [(int(a), int(b)) for a, b in zip(found.spans.starts, found.spans.ends, strict=True)][:2] == [(1, 3), (3, 4)]
    chains, _ = pipe.chains([doc])
    drawn = sum_chains(chains).sample(20_000, seed=0)[0]
    path = [pipe.labels.index(name) for name in ("B-LOC", "L-LOC")]
    assert found.spans.scores[0] == pytest.approx((drawn[:, 1:3] == path).all(axis=1).mean(), abs=0.015)
    assert found.spans.scores[0] <= found.spans.token_scores[:2].min() + 1e-12


def test_labels_of_an_extension_attribute_are_learned_and_set():
    Token.set_extension("crf_kind", default="", force=True)

    def kinds(nlp):
        doc = Doc(nlp.vocab, words=WORDS)
        for token, tag in zip(doc, TAGS, strict=True):
            token._.crf_kind = tag
        return [Example(Doc(nlp.vocab, words=WORDS), doc)]

    nlp, _, examples, _ = trained(kinds, target="_.crf_kind")
    assert [token._.crf_kind for token in nlp(Doc(nlp.vocab, words=WORDS))] == TAGS
    assert nlp.evaluate(examples)["crf_kind_acc"] == 1


def test_only_allowed_transitions():
    pairs = [["X", "N"], ["N", "X"]]
    nlp, pipe, *_ = trained(
        lambda nlp: [tagged(nlp, ["x", "a"] * 3, ["X", "N"] * 3), tagged(nlp, ["y"], ["Y"])], constraints=pairs
    )
    tags = [token.tag_ for token in nlp(Doc(nlp.vocab, words=["y", "y", "y", "y"]))]
    assert all([first, second] in pairs for first, second in zip(tags, tags[1:], strict=False))
    with pytest.raises(CalibError, match=r"'y y ' break the constraints of component 'calib_crf' \('Y' before 'Y'\)"):
        nlp.update([tagged(nlp, ["y", "y"], ["Y", "Y"])], sgd=nlp.create_optimizer())


def test_gold_that_is_missing_or_negative_is_a_mask():
    _, pipe, _, _ = trained(steps=0)
    nlp = spacy.blank("en")
    mask = pipe.gold_mask(tagged(nlp, ["x", "a", "y"], ["X", "", "!N"]))
    assert mask.tolist() == [[label == "X" for label in pipe.labels], [True] * 4, [label != "N" for label in pipe.labels]]


def test_sentences_are_chains_of_their_own():
    nlp, pipe, *_ = trained(by_sentence=True)
    doc = Doc(nlp.vocab, words=["x", "a", "a", "y"], sent_starts=[True, False, True, False])
    apart = [Doc(nlp.vocab, words=["x", "a", "a", "y"], sent_starts=[True, False, False, False])]
    joined = sum_chains(pipe.chains([doc])[0])
    assert joined.chains.packing.lengths.tolist() == [2, 2]
    assert pipe.chains(apart)[0].packing.lengths.tolist() == [4]


def test_weights_that_are_no_numbers():
    nlp, pipe, *_ = trained(steps=0)
    pipe.model.get_ref("potentials").set_param("starts", np.full(4, np.nan, dtype="f"))
    with pytest.raises(CalibError, match="NaN"):
        nlp("x a")


def after_updates(rate, steps=1):
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe("calib_crf", config={"model": {**SMALL, "transition_rate": rate}})
    optimizer = nlp.initialize(lambda: [tagged(nlp)])
    optimizer.L2 = 0.0
    for _ in range(steps):
        nlp.update([tagged(nlp)], sgd=optimizer)
    return nlp, pipe


def test_the_transition_rate_multiplies_the_learned_transitions():
    slow, fast = (potentials_of(after_updates(rate)[1].model) for rate in (1.0, 20.0))
    moved = np.abs(slow.transitions) > 1e-5
    assert moved.any()
    assert fast.transitions[moved] / slow.transitions[moved] == pytest.approx(20.0, rel=1e-3)
    assert fast.starts == pytest.approx(20 * slow.starts, rel=1e-3, abs=1e-6)


def test_the_gradient_of_the_parameters_is_the_rate_times_that_of_the_potentials():
    """Potentials are 20 times the parameters. Given as their own gradient, they give the parameters 20 * 20 = 400 times these."""
    _, pipe = after_updates(20.0)
    potentials = potentials_of(pipe.model)
    add_gradient(pipe.model, potentials)
    layer = pipe.model.get_ref("potentials")
    assert layer.get_grad("transitions") == pytest.approx(400.0 * layer.get_param("transitions"), rel=1e-5)


def test_the_rate_is_saved(tmp_path):
    nlp, pipe = after_updates(20.0, steps=3)
    nlp.to_disk(tmp_path)
    again = potentials_of(spacy.load(tmp_path).get_pipe("calib_crf").model)
    assert np.array_equal(again.transitions, potentials_of(pipe.model).transitions)
    assert again.transitions.any()


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_transition_rate_that_is_not_above_0_is_refused(rate):
    with pytest.raises(CalibError, match="transition_rate must be a number above 0"):
        make_chain_model(after_updates(1.0)[1].model.get_ref("tok2vec"), 2, rate)
