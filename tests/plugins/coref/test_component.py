"""The component `calib_coref`: what it learns, what it leaves on Docs, how it is saved, and what it says of bad input."""

from __future__ import annotations

import random

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_calib.errors import CalibError
from spacy_calib.plugins.coref.inference.antecedents import first_mentions

from .made import example, gold_doc, trained


@pytest.fixture(scope="module")
def nlp():
    return trained()


@pytest.fixture
def doc(nlp):
    return nlp(example(nlp, 100).predicted)


def clusters_on(doc: Doc) -> set[frozenset[tuple[int, int]]]:
    groups = (group for name, group in doc.spans.items() if name.startswith("coref_clusters_"))
    return {frozenset((span.start, span.end) for span in group) for group in groups}


def test_the_component_learns_the_clusters(nlp):
    right = total = 0
    for seed in range(100, 104):
        one = example(nlp, seed)
        found, gold = clusters_on(nlp(one.predicted)), clusters_on(one.reference)
        right, total = right + len(found & gold), total + len(gold)
    assert right > 0.6 * total


def test_mentions_clusters_pairs_and_samples_on_a_doc_agree(nlp, doc):
    view = doc._.coref
    assert [(span.start, span.end) for span in view.mentions] == [(s.start, s.end) for s in doc.spans["coref_mentions"]]
    assert clusters_on(doc) == {frozenset((s.start, s.end) for s in cluster) for cluster in view.clusters}
    assert view.first.tolist() == first_mentions(view.antecedents.best()).tolist()
    assert (view.pairs.probabilities >= 0.01).all()
    assert len(view.calibrated) == len(view.pairs)
    samples = view.sample(2000, seed=1)
    index = int(view.pairs.probabilities.argmax())
    late, early = int(view.pairs.later[index]), int(view.pairs.earlier[index])
    pairs = list(zip(view.pairs.later.tolist(), view.pairs.earlier.tolist(), strict=True))
    assert [view.raw(a, b) for a, b in pairs] == view.pairs.probabilities.tolist()
    assert [view.probability(a, b) for a, b in pairs] == view.calibrated.tolist()
    assert np.mean(samples[:, late] == samples[:, early]) == pytest.approx(view.raw(late, early), abs=0.06)
    assert view.probability(late, late) == view.raw(early, early) == 1
    assert view.clusters_in(samples[0]) == [list(cluster) for cluster in view.clusters_in(samples[0])]
    assert repr(view).startswith(f"<DocCoref: {len(view)} mentions")


def test_a_pair_below_the_threshold_has_the_share_of_its_group(doc):
    view = doc._.coref
    late, early = next((j, i) for j in range(len(view)) for i in range(j) if view.pairs.index_of(i, j) < 0)
    assert view.raw(late, early) == 0.0
    assert 0 <= view.probability(early, late) < 0.1
    with pytest.raises(CalibError, match="C360"):
        view.probability(0, 99)


def test_calibrated_pairs_are_nearer_to_the_gold_of_the_fit(nlp):
    # The maps come from documents that were held out: on others the mean of the probabilities is about the share of hits.
    scores, hits = [], []
    for seed in range(200, 215):
        one = example(nlp, seed)
        view = nlp(one.predicted)._.coref
        gold = nlp.get_pipe("calib_coref").gold_of(one)
        cluster = [gold[span.start, span.end] for span in view.mentions]
        scores += view.calibrated.tolist()
        hits += [cluster[i] == cluster[j] for i, j in zip(view.pairs.later, view.pairs.earlier, strict=True)]
    assert np.mean(scores) == pytest.approx(np.mean(hits), abs=0.06)


def test_a_saved_pipeline_gives_the_same_pairs(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    one, other = nlp(example(nlp, 7).predicted)._.coref, loaded(example(loaded, 7).predicted)._.coref
    assert (one.pairs.probabilities == other.pairs.probabilities).all()
    assert (one.calibrated == other.calibrated).all()
    pipe = loaded.get_pipe("calib_coref")
    assert pipe.from_bytes(pipe.to_bytes()).link_model.penalty == 1.0


def test_context_is_a_setting_and_wants_ten_documents(nlp):
    assert nlp.get_pipe("calib_coref").link_model.calibration.context is not None
    for n, config in ((10, {"context": False}), (4, {})):
        assert trained(n, **config).get_pipe("calib_coref").link_model.calibration.context is None


def dialogue(nlp, seed, named=True):
    """Two people who say I in turns; told apart by who speaks alone."""
    rng = random.Random(seed)
    words, said = [], []
    for _ in range(8):
        said.append(rng.choice(["Ann", "Bob"]))
        words += ["I", "slept", "."]
    gold, doc = (Doc(nlp.vocab, words=words, sent_starts=[i % 3 == 0 for i in range(len(words))]) for _ in range(2))
    for one in (gold, doc):
        one.spans["coref_mentions"] = [one[i : i + 1] for i in range(0, len(words), 3)]
        if named:
            one.spans["speakers"] = [Span(one, 3 * i, 3 * i + 3, name) for i, name in enumerate(said)]
    for number, name in enumerate(("Ann", "Bob"), start=1):
        gold.spans[f"coref_clusters_{number}"] = [gold[3 * i : 3 * i + 1] for i, own in enumerate(said) if own == name]
    return Example(doc, gold)


def test_who_speaks_tells_who_is_meant():
    nlp = spacy.blank("en")
    nlp.add_pipe("calib_coref", config={"penalty": 1.0, "recalibrator": None})
    examples = [dialogue(nlp, seed) for seed in range(6)]
    for one in examples[:3]:
        del one.predicted.spans["speakers"]  # then those of the gold are learned from
    nlp.initialize(lambda: examples)
    assert all("speakers" not in one.predicted.spans for one in examples[:3])
    one = dialogue(nlp, 100)
    gold = nlp.get_pipe("calib_coref").gold_of(one)
    view = nlp(one.predicted)._.coref
    same = np.array([[gold[a.start, a.end] == gold[b.start, b.end] for a in view.mentions] for b in view.mentions])
    chances = np.array([[view.raw(i, j) for j in range(8)] for i in range(8)])
    assert chances[same].min() > chances[~same].max()
    unknown = nlp(dialogue(nlp, 100, named=False).predicted)._.coref
    assert (unknown.pairs.probabilities != view.pairs.probabilities).any()


def test_other_gold_calibrates_anew():
    nlp = trained(4)
    pipe = nlp.get_pipe("calib_coref")
    examples = [example(nlp, seed) for seed in range(300, 312)]
    before = nlp(examples[0].predicted)._.coref
    assert len(pipe.held_out) == 4
    for one in examples:
        nlp(one.predicted)
    pipe.calibrate(examples)
    after = nlp(example(nlp, 300).predicted)._.coref
    assert (before.pairs.probabilities == after.pairs.probabilities).all()
    assert (before.calibrated != after.calibrated).any()
    with pytest.raises(CalibError, match=r"C361.*0 of them"):
        pipe.calibrate([])
    pipe.recalibrator = None
    with pytest.raises(CalibError, match=r"C361.*null"):
        pipe.calibrate(examples)


def test_score_has_clusters_and_pairs(nlp):
    from spacy_calib.plugins.coref.factory import SCORE_WEIGHTS

    scores = nlp.evaluate([example(nlp, seed) for seed in range(300, 310)])
    assert set(SCORE_WEIGHTS) <= set(scores)
    assert all(scores[f"coref_{name}"] > 0.6 for name in ("muc", "b3", "ceaf", "lea"))
    assert 0 < scores["coref_smce"] < 0.2
    assert scores["coref_smce_raw"] != scores["coref_smce"]
    assert set(nlp.get_pipe("calib_coref").score([]).values()) == {None}


def test_the_view_survives_storage_and_is_none_of_other_words(nlp, doc):
    kept = DocBin(docs=[doc], store_user_data=True).to_bytes()
    back = next(iter(DocBin().from_bytes(kept).get_docs(nlp.vocab)))
    assert (back._.coref.pairs.probabilities == doc._.coref.pairs.probabilities).all()
    assert back._.coref.clusters[0][0].text == doc._.coref.clusters[0][0].text
    assert doc[0:5].as_doc(copy_user_data=True)._.coref is None
    joined = Doc.from_docs([doc, doc])
    assert joined._.coref is None
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[2:4])
    assert doc._.coref is None
    assert nlp.make_doc("Anna")._.coref is None


def test_a_damaged_block_is_none(doc):
    key = next(key for key in doc.user_data if key[1] == "_coref")
    doc.user_data[key]["raw"] = doc.user_data[key]["raw"] / 2
    assert doc._.coref is None


def test_clusters_by_samples():
    nlp = trained(4, clusters="sample", recalibrator=None)
    again = nlp(example(nlp, 100).predicted)
    view = again._.coref
    assert view.calibrated is None
    assert view.first.tolist() in view.sample(100, 0).tolist()
    assert view.probability(0, 1) == view.raw(0, 1)


def test_mentions_are_found_where_none_are_given(nlp):
    made = Doc(nlp.vocab, words=["Anna", "saw", "her", "dog", "."], pos=["PROPN", "VERB", "PRON", "NOUN", "PUNCT"],
               heads=[1, 1, 3, 1, 1], deps=["nsubj", "ROOT", "poss", "dobj", "punct"], ents=["B-PERSON", "O", "O", "O", "O"])  # fmt: skip
    view = nlp(made)._.coref
    assert [span.text for span in view.mentions] == ["Anna", "her", "her dog"]
    assert [span.text for span in nlp("Anna saw her dog .")._.coref.mentions] == ["her"]


def test_mentions_of_the_component_may_be_learned_from():
    nlp = spacy.blank("en")
    nlp.add_pipe("calib_coref", config={"penalty": 1.0, "learn_on": "found", "mentions": ""})
    nlp.initialize(lambda: [Example(nlp.make_doc(gold.text), gold) for gold in (gold_doc(nlp, seed) for seed in range(4))])
    assert {span.text for span in nlp("she saw him .")._.coref.mentions} == {"she", "him"}


def test_components_in_front_look_at_the_examples_first():
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("calib_coref", config={"penalty": 1.0})
    golds = [gold_doc(nlp, seed) for seed in range(3)]
    examples = [Example(Doc(nlp.vocab, words=[token.text for token in gold]), gold) for gold in golds]
    nlp.initialize(lambda: examples)
    found = nlp.get_pipe("calib_coref")._document(examples[0], nlp)
    assert found.words.mentions.sentences.max() == 7
    assert not examples[0].predicted.has_annotation("SENT_START")


def test_one_mention_and_none(nlp):
    for words, n in ((["she", "left"], 1), (["rain"], 0), ([], 0)):
        view = nlp(Doc(nlp.vocab, words=words))._.coref
        assert len(view) == n
        assert view.clusters == []
        assert view.sample(2, 0).shape == (2, n)


def test_mentions_may_overlap_and_cross_sentences(nlp):
    one = example(nlp, 3).predicted
    one.spans["coref_mentions"] = [one[0:8], one[0:1], one[2:4], one[3:7]]
    view = nlp(one)._.coref
    assert [(s.start, s.end) for s in view.mentions] == [(0, 1), (0, 8), (2, 4), (3, 7)]


def test_a_mention_given_twice_is_refused(nlp):
    one = example(nlp, 3).predicted
    one.spans["coref_mentions"] = [one[0:1], one[2:4], one[0:1]]
    with pytest.raises(CalibError, match=r"C359.*'coref_mentions'.*twice"):
        nlp(one)
    bad = example(nlp, 3)
    bad.reference.spans["coref_clusters_9"] = [bad.reference[0:1]]
    with pytest.raises(CalibError, match="C359"):
        nlp.get_pipe("calib_coref").gold_of(bad)


def test_errors_before_the_fit_and_without_gold():
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("calib_coref")
    with pytest.raises(CalibError, match="C357"):
        nlp("she left")
    assert pipe.from_bytes(pipe.to_bytes())._link_model is None
    with pytest.raises(CalibError, match="C356"):
        nlp.initialize(lambda: [Example(nlp.make_doc("she left"), nlp.make_doc("she left"))])


@pytest.mark.parametrize(
    "config", [{"window": 0}, {"least": 0}, {"penalty": 0.0}, {"learn_on": "x"}, {"clusters": "x"}, {"threshold": 1.0}]
)
def test_settings_out_of_range_are_refused(config):
    with pytest.raises(CalibError, match="C001"):
        spacy.blank("en").add_pipe("calib_coref", config=config)


def test_one_document_cannot_be_calibrated():
    with pytest.raises(CalibError, match="C361"):
        trained(1)
    assert trained(1, recalibrator=None).get_pipe("calib_coref").link_model.calibration is None


def test_somebody_elses_extension_stays():
    ours = Doc.remove_extension("coref")
    Doc.set_extension("coref", default=1)
    try:
        with pytest.raises(CalibError, match="C358"):
            spacy.blank("en").add_pipe("calib_coref")
    finally:
        Doc.set_extension("coref", getter=ours[2], force=True)


def test_a_state_that_does_not_fit_is_refused(nlp):
    from spacy_calib.calibration.saved import FORMAT_VERSION, pack
    from spacy_calib.pipe import saved

    pipe = nlp.get_pipe("calib_coref")
    state = saved.load(pipe.to_bytes(), name="x", path="x")
    with pytest.raises(CalibError, match=r"C010.*weights"):
        pipe.from_bytes(saved.dump({**state, "weights": state["weights"][:-1]}))
    with pytest.raises(CalibError, match="C010"):
        pipe.from_bytes(saved.dump({"labels": []}))
    for version in (1, FORMAT_VERSION + 1):
        why = f"C011.*'calib_coref' has format version {version}, but .* reads version {FORMAT_VERSION}; fit the pipe again"
        with pytest.raises(CalibError, match=why):
            pipe.from_bytes(pack(state, "spacy-calib", version))
    assert pipe.link_model.weights is not None
