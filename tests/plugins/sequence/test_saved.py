"""The saved state of sequence models: what is not whole, of another kind or version is refused, before anything is taken over."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import spacy
import srsly

from spacy_calib.calibration.saved import FORMAT_VERSION, pack, unpack
from spacy_calib.errors import CalibError
from tests.conftest import LISTENER, TOK2VEC
from tests.plugins.sequence.trained import FACTORIES, SMALL, tagged, trained_labeller


@pytest.fixture(params=FACTORIES)
def pipe(request):
    return trained_labeller(request.param).get_pipe(request.param)


def blank(factory, **config):
    return spacy.blank("xx").add_pipe(factory, config=config)


def state_of(pipe):
    return unpack(pipe.to_bytes(), "spacy-calib-labeller")["state"]


def dumped(kind, state):
    return pack({"kind": kind, "state": state}, "spacy-calib-labeller")


def changed(pipe, **values):
    return dumped(pipe.kind, {**state_of(pipe), **values})


def test_bytes_and_back(pipe):
    nlp = trained_labeller(pipe.name)
    again = nlp.get_pipe(pipe.name).from_bytes(pipe.to_bytes())
    assert again.labels == pipe.labels
    assert again.cfg == pipe.cfg
    doc = nlp.make_doc("x a y new")
    assert (again.label_scores([doc])[0] == pipe.label_scores([doc])[0]).all()


def test_one_changed_bit_anywhere_is_refused(pipe):
    whole, rng = pipe.to_bytes(), np.random.default_rng(0)
    for place, bit in rng.integers([0, 0], [len(whole), 8], (200, 2)).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        with pytest.raises(CalibError, match=r"\[C33[56]\]"):
            pipe.from_bytes(bytes(damaged))
    assert pipe.to_bytes() == whole


def test_a_file_cut_short(pipe, tmp_path):
    nlp = trained_labeller(pipe.name)
    nlp.to_disk(tmp_path)
    for file in (tmp_path / pipe.name).iterdir():
        whole = file.read_bytes() if file.is_file() else b""
        if not whole:
            continue
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(CalibError, match=rf"C335.*component '{pipe.name}' cannot be loaded from .*train it again"):
            spacy.load(tmp_path)
        assert gc.isenabled(), file
        file.write_bytes(whole)
    spacy.load(tmp_path)


@pytest.mark.parametrize("factory", FACTORIES)
def test_bytes_of_another_kind_or_version(factory):
    other = "calib_hmm" if factory != "calib_hmm" else "calib_online"
    data = dumped(other, {})
    with pytest.raises(CalibError, match=f"written by a {other}, and this is a {factory}"):
        blank(factory).from_bytes(data)
    for version in (1, FORMAT_VERSION + 1):
        theirs = srsly.msgpack_dumps({**srsly.msgpack_loads(data), "version": version})
        why = f"format version {version}, but this spacy-calib reads version {FORMAT_VERSION}; train it again"
        with pytest.raises(CalibError, match=rf"C336.*{why}"):
            blank(factory).from_bytes(theirs)
    with pytest.raises(CalibError, match=r"C335.*not a whole file of ours"):
        blank(factory).from_bytes(b"\x00")
    assert blank(factory).from_bytes(blank(factory).to_bytes()).labels == ()  # before it learned anything


@pytest.mark.parametrize(
    ("factory", "key", "change", "says"),
    [
        ("calib_hmm", "follow", lambda a: a[:-1], r"'follow' has \(3, 4\) values, not \(4, 4\)"),
        ("calib_hmm", "first", lambda a: -a - 1, "'state.first' is not an array of numbers from 0"),
        ("calib_hmm", "of_word", lambda a: np.full_like(a, np.nan), "'state.of_word' is not an array of numbers"),
        ("calib_hmm", "words", lambda words: [*words, 7], "is not a text"),
        ("calib_hmm", "words", lambda words: [words[1], *words[1:]], "each word stands in 'words' once"),
        ("calib_hmm", "cfg", lambda cfg: {**cfg, "pseudocount": 0}, "'state.cfg.pseudocount' is not greater than 0"),
        ("calib_hmm", "cfg", lambda cfg: {**cfg, "labels": ["N", "N", "X", "Y"]}, "each label stands in 'labels' once"),
        ("calib_hmm", "cfg", lambda cfg: {**cfg, "target": "_.nowhere"}, r"C335.*Tokens have no extension 'nowhere'"),
        ("calib_hmm", "cfg", lambda cfg: {**cfg, "target": "ents"}, "'labels' are those of the target 'ents'"),
        ("calib_hmm", "cfg", lambda cfg: {**cfg, "constraints": [["N", "Z"]]}, "'constraints' name labels"),
        ("calib_online", "mu", lambda a: a[:-1], "'mu' has"),
        ("calib_online", "sigma", lambda a: np.full_like(a, np.nan), "'state.sigma' is not an array"),
        ("calib_online", "n_seen", lambda n: -1, "a whole number"),
        ("calib_online", "hashes", lambda a: a[::-1].copy(), "an array that rises"),
        ("calib_online", "cfg", lambda cfg: {**cfg, "labels": None}, "'state.cfg.labels' is not a list"),
        ("calib_online", "cfg", lambda cfg: {**cfg, "features": ["NO[0]"]}, "feature template"),
        ("calib_crfsuite", "weights", lambda a: np.full_like(a, np.inf), "'state.weights' is not an array of numbers"),
    ],
)  # fmt: skip
def test_state_of_another_form(factory, key, change, says):
    pipe = trained_labeller(factory).get_pipe(factory)
    before = pipe.to_bytes()
    with pytest.raises(CalibError, match=says):
        pipe.from_bytes(changed(pipe, **{key: change(state_of(pipe)[key])}))
    assert pipe.to_bytes() == before


def test_a_field_with_labels_that_its_weights_are_not_of(tmp_path):
    nlp = trained_labeller("calib_crf")
    pipe = nlp.get_pipe("calib_crf")
    pipe.cfg["labels"].append("more")
    with pytest.raises(CalibError, match=r"C335.*these 5 labels want: 'transitions' has \(4, 4\) values, not \(5, 5\)"):
        trained_labeller("calib_crf").get_pipe("calib_crf").from_bytes(pipe.to_bytes())
    pipe.cfg["labels"].pop()
    pipe.model.get_ref("potentials").set_param("ends", np.array([0, np.nan, 0, 0], dtype="f"))
    with pytest.raises(CalibError, match="'ends' holds NaN"):
        trained_labeller("calib_crf").get_pipe("calib_crf").from_bytes(pipe.to_bytes())


def test_a_field_that_listens_is_read_as_it_was_and_left_as_it_is():
    """The weights are read into a twin first; the listener itself stays connected to its tok2vec."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    pipe = nlp.add_pipe("calib_crf", config={"model": {**SMALL, "tok2vec": LISTENER}})
    nlp.initialize(lambda: [tagged(nlp)])
    pipe.model.get_ref("potentials").set_param("ends", np.array([0, 3, 0, 0], dtype="f"))
    before, tags = nlp.to_bytes(), [token.tag_ for token in nlp("x a y a")]
    again = spacy.blank("xx").from_config(nlp.config).from_bytes(before)
    assert [token.tag_ for token in again("x a y a")] == tags
    pipe = again.get_pipe("calib_crf")
    whole = pipe.to_bytes()
    with pytest.raises(CalibError, match=r"C335.*each label stands in 'labels' once"):
        pipe.from_bytes(changed(pipe, cfg={**pipe.cfg, "labels": ["N", "N", *pipe.cfg["labels"][2:]]}))
    assert pipe.to_bytes() == whole
    assert [token.tag_ for token in again("x a y a")] == tags


def test_the_templates_are_those_that_it_learned_with():
    pipe = trained_labeller("calib_online").get_pipe("calib_online")
    again = blank("calib_online", features=["ORTH[0]"]).from_bytes(pipe.to_bytes())
    assert again.templates == pipe.templates
