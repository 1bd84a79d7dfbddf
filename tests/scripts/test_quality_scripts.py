"""The parts of scripts/bench_quality.py on made-up logits, and its readers on the real data sets."""

import sys
from pathlib import Path

import numpy as np
import pytest
from quality import data, peers
from quality.data import DataSet, Split
from quality.judge import never_worse
from quality.ours import Task, methods, write_pairs
from quality.peer_worker import Data, pair_features

from spacy_calib.calibration.recalibrators import Platt
from spacy_calib.context.words import Words
from spacy_calib.metrics import log_loss
from spacy_calib.types import Pairs

N_TAGS = 6


def drawn(n: int, seed: int):
    """(logits, gold, documents, words) of n tokens: a head that is twice as sure as it should be and takes tag 1 for tag 2."""
    rng = np.random.default_rng(seed)
    true = rng.normal(0, 1.5, (n, N_TAGS)) - np.arange(N_TAGS) / 2
    chances = np.exp(true) / np.exp(true).sum(axis=1, keepdims=True)
    gold = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    gold[::97] = -1
    gold[::101] = -2
    logits = 2 * true
    logits[:, 1] += 1.0
    logits[:, 2] -= 1.0
    forms = rng.integers(1, 2**63, 40).astype(np.uint64)[rng.integers(0, 40, n)]
    shapes = ((forms % 3 == 0) + 2 * (forms % 7 == 0)).astype(np.intp)  # in title case, like a number
    words = Words(np.arange(0, n + 1, 10), forms, forms % 9, shapes, np.ones(n, bool))
    return logits.astype(np.float32), gold, np.arange(n) // 20, words


@pytest.fixture
def held():
    counts = tuple(np.bincount(drawn(900, 0)[1].clip(0), minlength=N_TAGS).tolist())
    labels = tuple("ABCDEF")
    return DataSet("ewt-tagger", labels, counts, 0.5, Split(*drawn(900, 0)), Split(*drawn(900, 1)))


def test_every_method_gives_a_probability_for_every_pair_and_most_are_better_than_raw(held):
    task = Task(held)
    losses = {}
    for name, run in methods():
        scores = run(task).scores
        assert scores.shape == (len(task.test),), name
        assert ((scores >= 0) & (scores <= 1)).all(), name
        losses[name] = log_loss(scores, task.test.hits)
    worse = {name for name, loss in losses.items() if loss >= losses["raw"]} - {"raw"}
    assert all("sum to 1" in name for name in worse), worse
    assert losses["auto"] < min(losses[f"TFG-5 {method}"] for method in ("histogram", "isotonic", "scaling binning"))


def test_never_worse_sees_a_rival_that_is_better():
    rng = np.random.default_rng(3)
    n = 4000
    chances = rng.uniform(0.05, 0.95, n)
    pairs = Pairs(np.arange(n), np.zeros(n, np.intp), chances, rng.random(n) < chances, n)
    documents = np.arange(n) // 20
    wrong = np.clip(chances**2, 0, 1)
    worse = never_worse(pairs, documents, wrong, {"true": chances, "wrong": wrong}, "log_loss", 2000)
    assert not worse.held
    assert (worse.rival, worse.best, worse.rivals) == ("true", "true", 2)
    assert worse.difference > worse.margin
    assert worse.upper > worse.difference
    fine = never_worse(pairs, documents, chances, {"true": chances, "wrong": wrong}, "brier", 2000)
    assert fine.held
    assert fine.upper <= fine.margin


def test_peers_run_in_an_environment_of_their_own_and_fail_as_failures(held, tmp_path, monkeypatch):
    folder = tmp_path / "made-up"
    folder.mkdir()
    data.write(held, folder)
    task = Task(held)
    write_pairs(task, folder)
    for how, n_numbers, n_categories in (("tag and ending", 1, 3), ("everything", 5, 6)):
        numbers, categories = pair_features(Data(folder), "test", how)
        assert (numbers.shape, categories.shape) == ((len(task.test), n_numbers), (len(task.test), n_categories))
    monkeypatch.setattr(peers, "environment", lambda name, cache: (Path(sys.executable), ""))
    methods_of_peers = {"scikit-learn": "sigmoid", "netcal": "IsotonicRegression"}
    tried = {name: peers.Peer((), {"binary": (None, (method,))}) for name, method in methods_of_peers.items()}
    monkeypatch.setattr(peers, "PEERS", tried)
    first = peers.run_peers(folder, tmp_path, tmp_path / "out", list(peers.PEERS))
    by_name = {(one.peer, one.how): one for one in first}
    sigmoid = by_name["scikit-learn", "pooled"]
    assert sigmoid.failure == ""
    scores = np.load(sigmoid.scores)
    ours_pooled = Platt().fit(task.fit_pairs.scores, task.fit_pairs.hits).predict(task.test.scores)
    assert log_loss(scores, task.test.hits) == pytest.approx(log_loss(ours_pooled, task.test.hits), abs=2e-3)
    assert all("netcal" in by_name["netcal", how].failure for how in ("pooled", "per group"))
    assert by_name["netcal", "pooled"].scores == ""
    # What is finished is not run again.
    monkeypatch.setattr(peers, "run_once", lambda *_: pytest.fail("ran again"))
    again = peers.run_peers(folder, tmp_path, tmp_path / "out", list(peers.PEERS))
    assert [(one.peer, one.how, one.failure) for one in again] == [(one.peer, one.how, one.failure) for one in first]
