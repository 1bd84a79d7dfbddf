"""What every forecaster must do, over all that are registered. A new one adds its rows to CASES."""

from __future__ import annotations

import numpy as np
import pytest

from spacy_calib.calibration.saved import make_part, pack, unpack
from spacy_calib.errors import CalibError
from spacy_calib.plugins.events.forecasters.base import Forecaster
from spacy_calib.registry import registry
from spacy_calib.schema import InvalidState

CASES = [
    ("spacy-calib.Neighbours.v1", {}),
    ("spacy-calib.Neighbours.v1", {"k": 7}),
    ("spacy-calib.Tree.v1", {"min_leaf": 5}),
    ("spacy-calib.Boosting.v1", {"n_trees": 8}),
    ("spacy-calib.Logistic.v1", {"ridge": 2.0}),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}{case[1]}")


def make(case) -> Forecaster:
    name, settings = case
    return registry.resolve({"one": {"@calib_forecasters": name, **settings}})["one"]


def rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n), np.full(n, 2.0)])
    return features, rng.random(n) < 1 / (1 + np.exp(-2 * features[:, 0] + features[:, 1]))


def theirs(case, features, hits, asked):
    """What scikit-learn says."""
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    name, settings = case
    scaler = StandardScaler().fit(features)
    model, is_scaled = {
        "spacy-calib.Neighbours.v1": lambda: (KNeighborsClassifier(settings.get("k", 100)), True),
        "spacy-calib.Tree.v1": lambda: (DecisionTreeClassifier(min_samples_leaf=5, random_state=0), False),
        "spacy-calib.Boosting.v1": lambda: (GradientBoostingClassifier(n_estimators=8, max_depth=2, min_samples_leaf=25, random_state=0), False),
        "spacy-calib.Logistic.v1": lambda: (LogisticRegression(C=0.5, tol=1e-10, max_iter=1000), True),
    }[name]()  # fmt: skip
    features, asked = map(scaler.transform, (features, asked)) if is_scaled else (features, asked)
    return model.fit(features, hits).predict_proba(asked)[:, 1]


def loaded(made: Forecaster) -> Forecaster:
    state = unpack(pack({"part": made.state()}, "test"), "test")["part"]
    return make_part(state, lambda kind, name: getattr(registry, kind[1:]).get(name))


@every_case
def test_a_loaded_forecaster_predicts_as_scikit_learn_does(case):
    features, hits = rows()
    asked, _ = rows(60, seed=1)
    made = make(case).fit(features, hits)
    again = loaded(made)
    assert again.settings() == made.settings()
    assert np.array_equal(again.predict(asked), made.predict(asked))
    # Logistic regression has a faint prior on its constant too, and arrives by another way.
    exact = 1e-3 if case[0] == "spacy-calib.Logistic.v1" else 1e-9
    assert np.allclose(again.predict(asked), theirs(case, features, hits, asked), atol=exact, rtol=0)


@every_case
def test_probabilities_also_of_rows_far_away_and_where_all_are_right(case):
    features, hits = rows()
    far = np.array([[1e6, -1e6, 1e6], [-1e6, 0.0, 0.0]])
    for right in (hits, np.ones(len(hits), bool), np.zeros(len(hits), bool)):
        said = make(case).fit(features, right).predict(far)
        assert ((said >= 0) & (said <= 1)).all()
    assert make(case).fit(features, np.ones(len(hits), bool)).predict(features).min() > 0.9


@every_case
def test_a_forecaster_does_not_change_its_input(case):
    features, hits = rows()
    before = features.copy()
    made = make(case).fit(features, hits)
    made.predict(features)
    assert np.array_equal(features, before)
    assert not made.clone().fitted
    assert made.predict(np.zeros((0, 3))).shape == (0,)


@every_case
def test_bad_input_is_one_sentence(case):
    features, hits = rows(20)
    with pytest.raises(CalibError, match="C004.*call fit"):
        make(case).predict(features)
    with pytest.raises(CalibError, match="C372.*shape"):
        make(case).fit(features[:, 0], hits)
    with pytest.raises(CalibError, match="C372.*NaN or an infinite number"):
        make(case).fit(np.where(features == 0, 1.0, np.inf), hits)
    with pytest.raises(CalibError, match="C373.*give it data"):
        make(case).fit(features[:0], hits[:0])
    with pytest.raises(CalibError, match="C374.*3 features, but 2"):
        make(case).fit(features, hits).predict(features[:, :2])


@pytest.mark.parametrize(
    ("name", "settings"),
    [("Neighbours", {"k": 0}), ("Tree", {"min_leaf": 0}), ("Boosting", {"rate": 2.0}), ("Logistic", {"ridge": 0.0})],
)
def test_a_setting_out_of_range(name, settings):
    with pytest.raises(CalibError, match="C001"):
        make((f"spacy-calib.{name}.v1", settings))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda held: held["nodes_"].pop("left"),
        lambda held: held["nodes_"].update(left=held["nodes_"]["left"] * 0),  # would walk in circles
        lambda held: held["nodes_"].update(feature=held["nodes_"]["feature"] + 3),
        lambda held: held["nodes_"].update(value=held["nodes_"]["value"][1:]),
        lambda held: held["nodes_"].update(roots=held["nodes_"]["roots"] + 1000),
    ],
)
def test_trees_that_cannot_be_walked_are_refused(spoil):
    features, hits = rows()
    state = make(("spacy-calib.Tree.v1", {})).fit(features, hits).state()["learned"]
    spoil(state)
    with pytest.raises(InvalidState):
        make(("spacy-calib.Tree.v1", {})).load_learned(state)


@pytest.mark.parametrize("name", ["Neighbours", "Tree", "Boosting"])
def test_all_sizes_at_once_are_those_one_by_one(name):
    features, hits = rows()
    asked, _ = rows(30, seed=1)
    made = make((f"spacy-calib.{name}.v1", {}))
    for right in (hits, np.ones(len(hits), bool)):
        found = made.predict_sizes(features, right, asked, [1, 10, 150])
        for size, said in zip((1, 10, 150), found, strict=True):
            assert np.allclose(said, made.with_size(size).fit(features, right).predict(asked))
