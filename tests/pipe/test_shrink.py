"""Context whose scores shrink towards a line: what is written on Docs, saved, loaded and adapted."""

from copy import deepcopy

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_calib.calibration.recalibrators import Platt
from spacy_calib.context.tokens import TokenContext
from spacy_calib.errors import CalibError
from spacy_calib.pipe.fitting import FitArguments, conventions_in, read_fit_inputs
from tests.conftest import examples_for, made_once, revive, run_upstream

CONTEXT = {"@calib_contexts": "spacy-calib.Context.v1"}


def examples(nlp, n: int = 150, seed: int = 2):
    return run_upstream(nlp, examples_for(nlp, n, seed=seed))


def fitted(nlp, name: str, **settings):
    """A pipe that was fitted in context."""
    data = examples(nlp)
    return nlp.add_pipe("calib", name, after="tagger", config={"attr": name, "context": {**CONTEXT, **settings}}).fit(data)


@pytest.fixture
def nlp(trained_bytes):
    """A pipeline with a pipe `plain` and one `halfway` between its maps and its line, fitted once for all tests."""

    def fit():
        nlp = revive(trained_bytes)
        pipes = fitted(nlp, "plain"), fitted(nlp, "halfway", shrink=0.5)
        held_out = {pipe.attr: pipe.held_out for pipe in pipes}
        return {"config": nlp.config.copy(), "bytes": nlp.to_bytes(), "held_out": held_out}

    saved = made_once("shrunk", fit)
    nlp = revive(saved)
    for name, pairs in saved["held_out"].items():
        nlp.get_pipe(name).held_out = pairs  # of the process that fitted
    return nlp


@pytest.fixture
def plain(nlp):
    return nlp.get_pipe("plain")


@pytest.fixture
def halfway(nlp):
    return nlp.get_pipe("halfway")


def texts(nlp) -> list[Doc]:
    """Docs of known words, and of others."""
    known = [example.predicted for example in examples_for(nlp, 6, seed=5)]
    return [*known, *(Doc(nlp.vocab, words=[f"{word}{number}" for word in "abcdefghijkl"]) for number in range(6))]


def scores(docs, attr: str) -> np.ndarray:
    return np.array([score for doc in docs for token in doc for score in token._.get(f"{attr}_scores").values()])


def as_by_hand(calib, before: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """Half the log-odds of the scores and half of those on the line of the pipe."""
    slope, constant = calib.tokens.context.line_
    before, raw = (np.log(np.clip(one, 1e-6, 1 - 1e-6) / (1 - np.clip(one, 1e-6, 1 - 1e-6))) for one in (before, raw))
    return 1 / (1 + np.exp(-(before + slope * raw + constant) / 2))


def test_0_changes_nothing(nlp, plain):
    unshrunk = fitted(nlp, "unshrunk", shrink=0)
    assert (unshrunk.tokens.context.line_, unshrunk.tokens.context.shrinkage) == (None, None)
    docs = list(nlp.pipe(texts(nlp)))
    assert scores(docs, "unshrunk").tolist() == scores(docs, "plain").tolist()


def test_half_of_the_way_is_halfway_between_the_maps_and_the_line(nlp, plain, halfway):
    tokens = [token for doc in nlp.pipe(texts(nlp)) for token in doc]
    names = ("plain_score", "halfway_score", "halfway_raw")
    before, found, raw = (np.array([token._.get(name) for token in tokens]) for name in names)
    assert found == pytest.approx(as_by_hand(halfway, before, raw), abs=1e-12)
    assert np.abs(found - before).max() > 0.01


def test_the_line_is_platts_of_the_fit_data_where_conventions_agree(nlp, halfway):
    inputs = read_fit_inputs(halfway, examples(nlp), FitArguments())
    differ = [row for convention in conventions_in(inputs) for row in convention.rows.tolist()]
    pairs = inputs.data.kept_pairs
    own = np.flatnonzero(~np.isin(pairs.rows, differ))
    line = Platt().fit(pairs.scores[own], pairs.hits[own]).coefficients_
    assert halfway.tokens.context.line_.tolist() == line.tolist()


def test_labels_below_the_threshold_shrink_too(nlp, plain, halfway):
    doc = nlp.get_pipe("tagger")(nlp.get_pipe("tok2vec")(nlp.make_doc("dog runs")))
    doc[0].tag_ = min(nlp.get_pipe("tagger").labels, key=lambda tag: 0 if tag != doc[0].tag_ else 1)
    plain.threshold = halfway.threshold = 0.9
    doc = halfway(plain(doc))
    assert doc[0]._.halfway_raw < 0.9
    wanted = as_by_hand(halfway, np.array([doc[0]._.plain_score]), np.array([doc[0]._.halfway_raw]))
    assert doc[0]._.halfway_score == pytest.approx(wanted[0])


def test_held_out_scores_of_the_fit_shrink_too(plain, halfway):
    pairs = halfway.held_out.pairs
    wanted = as_by_hand(halfway, plain.held_out.calibrated, pairs.scores)
    assert halfway.held_out.calibrated == pytest.approx(wanted, abs=1e-12)


def test_it_is_saved_with_the_pipe(nlp, halfway, tmp_path):
    nlp.to_disk(tmp_path / "saved")
    again = spacy.load(tmp_path / "saved")
    context = again.get_pipe("halfway").tokens.context
    assert (context.shrink, context.line_.tolist()) == (0.5, halfway.tokens.context.line_.tolist())
    assert again.config["components"]["halfway"]["context"]["shrink"] == 0.5
    assert scores(again.pipe(texts(again)), "halfway").tolist() == scores(nlp.pipe(texts(nlp)), "halfway").tolist()


@pytest.mark.parametrize(("part", "changed", "why"), [
    ("settings", {"shrink": 1.5}, "shrink must be a number from 0 to 1"),
    ("settings", {"shrink": "half"}, "shrink must be a number from 0 to 1"),
    ("settings", {"shrink": 0.0}, "'learned.line' is not two numbers where scores shrink, else none"),
    ("learned", {"line": None}, "'learned.line' is not two numbers"),
    ("learned", {"line": np.zeros(3)}, "'learned.line' is not two numbers"),
    ("learned", {"line": np.array([np.nan, 0.0])}, "'learned.line"),
])  # fmt: skip
def test_a_changed_state_is_refused(halfway, part, changed, why):
    state = deepcopy(halfway._state())
    state["context"][part].update(changed)
    with pytest.raises((CalibError, ValueError), match=why):
        halfway._read_state(state)


def test_an_adaptation_keeps_it_and_follows_it(nlp, halfway):
    """What it moves are the scores that shrank."""
    line, (doc, *_) = halfway.tokens.context.line_.tolist(), nlp.pipe(texts(nlp))
    before = np.array([token._.halfway_score for token in doc])
    halfway.adapt(examples(nlp, 12, seed=9))
    context, (adaptation,) = halfway.tokens.context, halfway.tokens.adaptations
    assert (context.shrink, context.line_.tolist()) == (0.5, line)
    tags = np.array([halfway.labels.index(token.tag_) for token in doc])
    after = [token._.halfway_score for token in halfway(doc)]
    np.testing.assert_allclose(after, adaptation.adjust(before, np.ones(len(doc), dtype=bool), tags), atol=1e-9)
    assert np.abs(np.array(after) - before).max() > 1e-4


@pytest.mark.parametrize("given", [-0.1, 1.01, float("nan"), True, "0.5", None])
def test_a_share_out_of_range_is_refused(given):
    with pytest.raises(CalibError, match=r"\[C001\] .*shrink must be a number from 0 to 1, but .* was given"):
        TokenContext([], shrink=given)
