"""The two maps of a pipe: which Docs get which, and what is written on them."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.calibration.portable import Portable, UsualWords
from spacy_calib.errors import CalibError
from tests.conftest import examples_for, run_upstream

CONTEXT = {"@calib_contexts": "spacy-calib.Context.v1"}


@pytest.fixture
def calib(nlp):
    """A pipe that was fitted in context."""
    examples = run_upstream(nlp, examples_for(nlp, 150, seed=2))
    return nlp.add_pipe("calib", after="tagger", config={"context": CONTEXT}).fit(examples)


def scores(docs) -> list[float | None]:
    return [token._.calib_score for doc in docs for token in doc]


def texts(nlp) -> list[Doc]:
    """Docs of known words, and of others."""
    known = [example.predicted for example in examples_for(nlp, 6, seed=5)]
    return [*known, *(Doc(nlp.vocab, words=[f"{word}{number}" for word in "abcdefghijkl"]) for number in range(6))]


def test_docs_say_which_map_their_scores_come_from(nlp, calib):
    calib.learned.tokens.portable = Portable(calib.tokens.portable.line, False, UsualWords(0.1, 0.09, 0.0))
    docs = list(nlp.pipe(texts(nlp)))
    assert [doc._.calib_map for doc in docs] == ["home"] * 6 + ["anywhere"] * 6
    alone = [nlp(doc) for doc in texts(nlp)]
    assert scores(alone) == scores(docs)
    assert [doc._.calib_map for doc in alone] == [doc._.calib_map for doc in docs]
    calib.map_for = "home"
    home = list(nlp.pipe(texts(nlp)))
    calib.map_for = "anywhere"
    away = list(nlp.pipe(texts(nlp)))
    assert scores(docs) == scores([*home[:6], *away[6:]])
    assert scores(home[6:]) != scores(away[6:])
    assert {doc._.calib_map for doc in away} == {"anywhere"}
    assert docs[0][:2].as_doc(copy_user_data=True)._.calib_map == "home"
    assert Doc.from_docs([docs[0], docs[7]])._.calib_map is None
    assert Doc(nlp.vocab, words=["dog"])._.calib_map is None


def test_labels_below_the_threshold_go_by_the_same_map(nlp, calib):
    raw, found = None, {}
    for map_for in ("home", "anywhere"):
        calib.map_for = map_for
        doc = nlp.get_pipe("tagger")(nlp.get_pipe("tok2vec")(nlp.make_doc("dog runs")))
        rare = min(nlp.get_pipe("tagger").labels, key=lambda tag: 0 if tag != doc[0].tag_ else 1)
        doc[0].tag_ = rare
        calib.threshold = 0.9
        found[map_for] = calib(doc)[0]._.calib_score
        raw = doc[0]._.calib_raw
    assert raw < 0.9
    expected = calib.tokens.portable.blend(np.array([found["home"]]), np.array([raw]))
    assert found["anywhere"] == pytest.approx(expected[0])


def test_it_is_saved_with_the_pipe(nlp, calib, tmp_path):
    nlp.to_disk(tmp_path / "saved")
    again = spacy.load(tmp_path / "saved").get_pipe("calib")
    assert again.tokens.portable.line.tolist() == calib.tokens.portable.line.tolist()
    assert again.tokens.portable.usual == calib.tokens.portable.usual
    assert again.map_for is None


def test_without_context_there_is_one_map(nlp):
    examples = run_upstream(nlp, examples_for(nlp, 80, seed=2))
    calib = nlp.add_pipe("calib", after="tagger", config={"map_for": "anywhere"}).fit(examples)
    with pytest.warns(UserWarning, match=r"\[CW65\] The pipe 'calib' has no map for texts of other sources"):
        doc = nlp("dog")
    assert doc._.calib_map is None
    assert calib.tokens.portable is None


def test_labelled_documents_of_a_new_kind_are_the_home_of_an_adapted_pipe(nlp, calib):
    assert calib.tokens.portable is not None
    calib.adapt(run_upstream(nlp, examples_for(nlp, 12, seed=9)))
    assert calib.tokens.portable is None
    assert nlp("dog")._.calib_map is None


def test_no_such_map(nlp):
    with pytest.raises(CalibError, match=r"\[C001\] .*map_for.* home or anywhere"):
        nlp.add_pipe("calib", after="tagger", config={"map_for": "abroad"})
