"""The source of confidences: of any labeller, with a scale that the fit finds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from scipy.stats import kstest
from spacy.tokens import Doc

from spacy_calib.errors import CalibError
from spacy_calib.pairs.progress import Progress
from spacy_calib.plugins.sequence.confidence import WeightSamples, gaps, k_best_shares, normals, sample_learner, shares_of
from spacy_calib.plugins.sequence.features import SparseFeatures
from spacy_calib.plugins.sequence.inference.best import viterbi
from spacy_calib.plugins.sequence.inference.chains import Chains, Potentials
from spacy_calib.plugins.sequence.source import SCALES, ConfidenceSource, choose_scale
from tests.conftest import examples_for, train_pipeline
from tests.plugins.sequence.inference.chains import enumerate_labellings, small_chains
from tests.plugins.sequence.trained import WORDS, online_learner, tagged, trained_labeller, with_entities


@pytest.mark.parametrize("way", ["kd_pc", "kd_fixed", "kbv", "wkbv", "delta"])
def test_a_doc_is_as_sure_in_any_batch(way):
    nlp = trained_labeller("calib_online")
    pipe, source = nlp.get_pipe("calib_online"), ConfidenceSource(way=way, k=7)
    docs = [Doc(nlp.vocab, words=words) for words in (WORDS, ["new", "a"], [], ["y"])]
    together = source.confidences(pipe, docs)
    alone = [one for doc in docs for one in source.confidences(pipe, [doc])]
    assert all((first == second).all() for first, second in zip(together, alone, strict=True))


@pytest.mark.parametrize(
    ("factory", "way"), [("calib_online", "kd_pc"), ("calib_online", "kd_fixed"), ("calib_crf", "kd_fixed")]
)
def test_draws_obey_the_constraints(factory, way):
    nlp = trained_labeller(factory, "ents")
    pipe, source = nlp.get_pipe(factory), ConfidenceSource(factory, way=way)
    forbidden = pipe.constraint_potentials().transitions < 0
    for (labels,) in source.weight_samples(pipe, [Doc(nlp.vocab, words=WORDS)]).labels(5, [4.0]):
        assert not forbidden[labels[:-1], labels[1:]].any()


def test_draws_of_a_chain_move_its_transitions_too():
    nlp = trained_labeller("calib_crf")
    draws = ConfidenceSource("calib_crf", way="kd_fixed").weight_samples(
        nlp.get_pipe("calib_crf"), [Doc(nlp.vocab, words=WORDS)]
    )
    moved = draws.sample_scores(0, [1.0])[1] - draws.chains.transitions
    assert moved.std() == pytest.approx(1.0, abs=0.5)


@pytest.mark.parametrize("way", ["kd_pc", "delta", "wkbv"])
def test_entities_have_types_and_are_as_sure_as_their_least_sure_tag(way):
    nlp = trained_labeller("calib_online", "ents")
    pipe, source = nlp.get_pipe("calib_online"), ConfidenceSource(way=way, scale=0.5)
    doc = nlp(with_entities(nlp)[0].reference.text)
    found = source.read(pipe, [doc])
    assert source.labels(pipe) == ("O", "LOC", "PER")
    assert np.bincount(found.marginals_above(0.0).rows, weights=found.marginals_above(0.0).scores) == pytest.approx(np.ones(5))
    of_tags = dict(zip(pipe.labels, source.confidences(pipe, [doc])[0].T, strict=True))
    assert found.spans.scores == pytest.approx([min(of_tags["B-LOC"][1], of_tags["L-LOC"][2]), of_tags["U-PER"][3]])


def test_more_labellings_are_asked_for_than_there_are():
    nlp = trained_labeller("calib_hmm")
    given = ConfidenceSource("calib_hmm", way="kbv", k=1000).confidences(
        nlp.get_pipe("calib_hmm"), [Doc(nlp.vocab, words=["x"])]
    )
    assert given[0] == pytest.approx(np.full((1, 4), 0.25))


def test_the_scale_that_finds_wrong_labels_best():
    nlp = trained_labeller("calib_online")
    examples = [tagged(nlp), tagged(nlp, WORDS[:4], ["X", "N", "Y", "Y"])]
    source, pipe = ConfidenceSource(k=5), nlp.get_pipe("calib_online")
    assert source.has_auto_settings
    assert source.resolve_auto_settings(pipe, examples) == {"scale": source.scale}
    assert source.scale in SCALES
    assert not source.has_auto_settings
    assert source.settings_summary == f"kd_pc, k 5, scale {source.scale:.3g}"
    # Where nothing is wrong there is nothing to choose by.
    assert choose_scale(source, pipe, [tagged(nlp)]) == choose_scale(source, pipe, []) == 0.1


def test_a_fit_shows_how_far_it_is():
    nlp = trained_labeller("calib_online")
    source = {"@calib_sources": "spacy-calib.Confidence.v1", "k": 5}
    calib = nlp.add_pipe("calib", config={"source": source, "recalibrator": {"@calib_recalibrators": "spacy-calib.Platt.v1"}})
    examples = [tagged(nlp) for _ in range(4)] + [tagged(nlp, WORDS[:4], ["X", "N", "Y", "Y"])] * 2
    calls: list[tuple[float, str]] = []
    calib.fit(examples, progress=Progress(lambda share, stage: calls.append((share, stage))))
    assert calib.fitted
    shares = [share for share, _ in calls]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    # One report before each of 5 numbers of draws and of 6 examples, and one at the end of both.
    assert Counter(stage for _, stage in calls) == {"Choosing settings": 6, "Reading scores": 7, "Fitting the maps": 2}


def test_the_head_of_a_tagger():
    nlp = train_pipeline(["tagger"], steps=2)
    source, pipe = ConfidenceSource("tagger", way="kd_fixed", k=20), nlp.get_pipe("tagger")
    docs = [example.predicted for example in examples_for(nlp, 3, 5)]
    for _, component in nlp.components[:-1]:
        docs = list(component.pipe(docs))
    found = source.read(pipe, docs).marginals_above(0.0)
    assert np.bincount(found.rows, weights=found.scores) == pytest.approx(np.ones(sum(map(len, docs))))
    assert not ConfidenceSource("tagger").supports(pipe)


def test_draws_of_what_is_sure_are_of_online_learners_alone():
    crf, online = (trained_labeller(name).get_pipe(name) for name in ("calib_crf", "calib_online"))
    for way in ("kd_pc", "kd_fixed", "kbv", "wkbv", "delta"):
        source = ConfidenceSource(way=way)
        assert source.supports(online)
        assert source.supports(crf) == (way != "kd_pc"), way


def test_settings_out_of_range():
    for wrong, says in (({"way": "none"}, "way must be one of"), ({"k": 0}, "k must be at least 1"), ({"scale": 0.0}, "scale must be greater than 0")):  # fmt: skip
        with pytest.raises(CalibError, match=says):
            ConfidenceSource(**wrong)


def test_a_scale_is_chosen_by_the_fit_and_saved(tmp_path):
    nlp = trained_labeller("calib_online")
    examples = [tagged(nlp), tagged(nlp, WORDS[:4], ["X", "N", "Y", "Y"])] * 3
    source = {"@calib_sources": "spacy-calib.Confidence.v1", "component": "calib_online", "k": 5}
    calib = nlp.add_pipe("calib", config={"source": source})
    calib.fit(examples)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.get_pipe("calib").source.scale == calib.source.scale == nlp.config["components"]["calib"]["source"]["scale"]
    assert not again.get_pipe("calib").lookup.weights_changed()
    again.get_pipe("calib_online").update([tagged(again, WORDS[:4], ["X", "N", "Y", "Y"])])
    assert again.get_pipe("calib").lookup.weights_changed()


def test_shares_by_hand():
    found = shares_of([[0, 1], [0, 0], [1, 1]], [2.0, 1.0, 1.0], 2)
    assert found.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert shares_of([[0], [1]], [0.0, 0.0], 2).tolist() == [[0.5, 0.5]]


@settings(max_examples=30)
@given(made=small_chains(forbid=False))
def test_k_best_shares_are_those_of_the_first_labellings(made):
    for scores, plain, weighted in zip(
        made.scores, k_best_shares(made.chains, 3, False), k_best_shares(made.chains, 3, True), strict=True
    ):
        every = sorted(enumerate_labellings(scores, made.potentials).items(), key=lambda one: -one[1])[:3]
        weights = np.maximum(0.0, [total for _, total in every])
        for found, by in ((plain, np.ones(len(every))), (weighted, weights if weights.sum() else np.ones(len(every)))):
            wanted = sum(w * np.eye(made.potentials.n_labels)[list(labels)] for (labels, _), w in zip(every, by, strict=True))
            assert found == pytest.approx(wanted / by.sum(), abs=1e-9)


@settings(max_examples=30)
@given(made=small_chains(forbid=False))
def test_gaps_are_largest_for_the_predicted_label(made):
    chains = made.chains
    for labels, found in zip(viterbi(chains), gaps(chains), strict=True):
        own = found[np.arange(len(labels)), labels]
        assert (own >= 0.5).all()
        assert (own == found.max(axis=1)).all()


def test_gap_by_hand():
    # The best labelling scores 3, the best with another label at the first token 1: a gap of 2.
    found = gaps(Chains.from_scores([np.array([[2.0, 0.0], [0.0, 1.0]])], Potentials.zeros(2)))[0]
    assert found[0] == pytest.approx([1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))])


def test_draws_count_agreement():
    learned, other = (Chains.from_scores([np.array([scores])], Potentials.zeros(2)) for scores in ([1.0, 0.0], [-3.0, 0.0]))
    stays = Chains.from_scores([np.zeros((1, 2))], Potentials.zeros(2))
    draws = WeightSamples(learned, lambda number: other if number == 2 else stays)
    assert draws.shares(4, 1.0)[0].tolist() == [[0.75, 0.25]]
    assert draws.shares(4, 0.1)[0].tolist() == [[1.0, 0.0]]  # at a tenth of the variance it moves by a third, not by all
    assert [labels.tolist() for labels in draws.labels(3, [0.1, 1.0])] == [[[0], [0]], [[0], [0]], [[0], [1]]]


@pytest.mark.parametrize("way", ["kd_pc", "kd_fixed"])
def test_all_scales_at_once_are_each_by_itself(way):
    nlp = trained_labeller("calib_online", "ents")
    texts = [Doc(nlp.vocab, words=words) for words in (["in", "New", "York"], ["Ann"], [], ["ran", "in", "new", "Ann", "York"])]
    draws = ConfidenceSource(way=way).weight_samples(nlp.get_pipe("calib_online"), texts)
    for number, labels in enumerate(draws.labels(5, [0.01, 0.3, 4.0])):
        for own, scores, transitions in zip(labels, *draws.sample_scores(number, [0.01, 0.3, 4.0]), strict=True):
            alone = viterbi(Chains(scores, transitions, draws.chains.packing))
            assert own.tolist() == np.concatenate(alone).tolist()


def test_normals_are_normal_independent_and_stay():
    codes = np.arange(20_000)
    first, second = normals(codes, 0, 0), normals(codes, 1, 0)
    assert kstest(first, "norm").pvalue > 0.001
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.03
    assert (normals(codes[500:510], 0, 0) == first[500:510]).all()
    assert (normals(codes, 0, 1) != first).all()


@pytest.mark.parametrize("way", ["kd_pc", "kd_fixed"])
def test_a_word_that_was_never_seen_is_less_sure(way):
    """Its features have mean 0 and the variance that all began with; without them it would be as sure as the transitions are."""
    nlp, pipe, _ = online_learner()
    doc = nlp(Doc(nlp.vocab, words=[WORDS[0], "unheard"]))
    source = ConfidenceSource(way=way, scale=0.05, k=400)
    [shares] = source.confidences(pipe, [doc])
    [without] = sample_learner(pipe.learner, pipe.features_of(doc), way == "kd_pc", 0).shares(400, 0.05)
    assert shares[1].max() < without[1].max()
    assert shares[0].max() == pytest.approx(without[0].max(), abs=0.1)
    # Another text beside it changes nothing.
    both = source.confidences(pipe, [nlp(Doc(nlp.vocab, words=["other", "words"])), doc])
    assert (both[1] == shares).all()


def test_draws_have_the_mean_and_variance_of_the_weights():
    _, pipe, _ = online_learner()
    learner, tokens = pipe.learner, SparseFeatures(np.array([1, 1 << 45]), np.array([0, 1, 2]))
    width = learner.n_labels
    made = sample_learner(learner, [tokens], True, 0)
    draws = np.concatenate([made.sample_scores(number, [0.5])[0] for number in range(3000)])[
        :, made.chains.packing.packed_index
    ]
    variance = np.stack([learner.sigma.reshape(-1, width)[1], np.ones(width)])
    assert draws.mean(axis=0) == pytest.approx(np.stack([learner.mean.reshape(-1, width)[1], np.zeros(width)]), abs=0.08)
    assert draws.var(axis=0) == pytest.approx(0.5 * variance, rel=0.15)
