"""The estimator: what it learns, what it gives, and what it refuses."""

import numpy as np
import pytest
import scipy.sparse
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib import TagCalibrator
from spacy_calib.calibration.recalibrators import HistogramBinning, IsotonicRegression
from spacy_calib.errors import CalibError
from tests.made import SCORED_TAGS, TagScores
from tests.pipe.test_registered import Halved
from tests.sentences import says


def docs_of(made):
    """The same scores on Docs: (predicted with the scores in user_data, gold), one for each document."""
    nlp = spacy.blank("xx")
    examples = []
    for document in np.unique(made.documents):
        own = made.documents == document
        words = ["x"] * int(own.sum())
        predicted = Doc(nlp.vocab, words=words, tags=[SCORED_TAGS[i] for i in made.P[own].argmax(axis=1)])
        predicted.user_data["probs"] = made.P[own]
        examples.append(Example(predicted, Doc(nlp.vocab, words=words, tags=made.y[own].tolist())))
    return nlp, examples


FURTHER = {"normalize": True, "threshold": 0.02}


@pytest.mark.parametrize(
    ("parameters", "config"),
    [
        ({}, {"selection": {}}),
        (
            {"method": "platt", "n_groups": 3, "scaling": "vector", "tag_offsets": True, **FURTHER},
            {
                "recalibrator": {"@calib_recalibrators": "spacy-calib.Platt.v1"},
                "grouping": {"@calib_groupings": "spacy-calib.TFG.v1", "n_groups": 3},
                "scaling": {"@calib_scalings": "spacy-calib.VectorScaling.v1"},
                "tag_offsets": True,
                **FURTHER,
            },
        ),
        ({"method": IsotonicRegression(), "normalize": True}, {"normalize": True}),
    ],
    ids=["auto", "by hand", "normalized"],
)
def test_an_estimator_has_the_scores_of_a_pipe(made, parameters, config):
    made = TagScores(made.P[:200], made.y[:200], made.documents[:200]) if not parameters else made  # too few to try all
    nlp, examples = docs_of(made)
    source = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": SCORED_TAGS, "key": "probs"}
    pipe = nlp.add_pipe("calib", config={"source": source, **config})
    pipe.fit(examples)
    docs = [pipe(eg.predicted) for eg in examples]
    by_pipe = np.concatenate([doc._.calib.to_dense(SCORED_TAGS) for doc in docs])

    calibrator = TagCalibrator(**{"threshold": 0.01, **parameters}).fit(made.P, made.y, groups=made.documents)
    assert_allclose(calibrator.transform(made.P), by_pipe, rtol=0, atol=1e-12)
    assert calibrator.selection_.get("chosen") == (pipe.fit_info.selection or {}).get("chosen")


def test_a_map_worked_out_by_hand():
    # One bin, one group: of four scores two hit, so that each becomes .5.
    P, y = [[0.9, 0.0], [0.8, 0.0], [0.0, 0.7], [0.0, 0.6]], ["a", "b", "b", "a"]
    calibrator = TagCalibrator(HistogramBinning(1), n_groups=1, threshold=0.01).fit(P, y)
    assert calibrator.transform(P).tolist() == [[0.5, 0.0], [0.5, 0.0], [0.0, 0.5], [0.0, 0.5]]
    # Rows sum to 1: the gold tag of units 1 and 3 has all, that of units 2 and 4 nothing, which counts as 1e-6.
    assert calibrator.score(P, y) == pytest.approx(np.log(1e-6) / 2)
    assert calibrator.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("seed", range(3))
def test_few_labels_of_a_strongly_biased_model_change_which_is_likeliest(seed):
    # As of a language model that is asked for the type of a span: it prefers the first names.
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 4, 1500)
    logits = rng.normal(0.0, 1.0, (1500, 4)) + 2.2 * (gold[:, None] == np.arange(4)) + [2.0, 1.0, -1.0, -2.0]
    P, few = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), slice(166)
    calibrator = TagCalibrator(classes=SCORED_TAGS[:4], threshold=1e-4).fit(P[few], gold[few])
    made = calibrator.predict_proba(P[166:])
    right = [(one.argmax(axis=1) == gold[166:]).mean() for one in (P[166:], made)]
    assert right[0] < 0.65
    assert right[1] > 0.8
    assert log_loss(gold[166:], made) < 0.55


@pytest.mark.parametrize("normalize", [False, True])
def test_rows_of_predict_proba_sum_to_one(made, normalize):
    """As scikit-learn expects of them: its log_loss warns of others."""
    calibrator = TagCalibrator("isotonic", normalize=normalize).fit(made.P, made.y, made.documents)
    given = calibrator.predict_proba(made.P)
    assert_allclose(given.sum(axis=1), 1, atol=1e-12)
    assert log_loss(made.y, given, labels=SCORED_TAGS) > 0  # warnings are errors here
    plain = calibrator.transform(made.P)
    floors = np.maximum(plain, 0.5 / len(made.y))
    assert_allclose(given, floors / floors.sum(axis=1, keepdims=True))
    assert normalize is not False or abs(plain.sum(axis=1) - 1).max() > 0.01
    assert_array_equal(calibrator.classes_[given.argmax(axis=1)], calibrator.predict(made.P))


def test_forms_of_scores_are_one(made):
    parameters = {"method": "beta", "classes": SCORED_TAGS}
    made = TagScores(np.where(made.P > 1e-4, made.P, 0), made.y, made.documents)
    wanted = TagCalibrator(**parameters).fit(made.P, made.y, made.documents)
    rows, columns = np.nonzero(made.P > 1e-4)
    shuffled = np.random.default_rng(0).permutation(len(rows))
    rows, columns = rows[shuffled], columns[shuffled]
    by_name = (rows, np.array(SCORED_TAGS)[columns], made.P[rows, columns])
    by_column = (rows, columns, made.P[rows, columns])
    for P in (made.P.tolist(), scipy.sparse.csr_matrix(made.P), scipy.sparse.coo_matrix(made.P), by_name, by_column):
        calibrator = TagCalibrator(**parameters).fit(P, made.y, made.documents)
        assert_allclose(calibrator.predict_proba(P), wanted.predict_proba(made.P), atol=1e-15)
        assert_array_equal(calibrator.predict(P), wanted.predict(made.P))
    assert scipy.sparse.issparse(calibrator.transform(by_name))
    assert_allclose(calibrator.transform(by_name).toarray(), calibrator.transform(made.P))


def test_what_another_package_registers_is_found_tried_and_read_again(made, register):
    register("calib_recalibrators", "elsewhere.Halved.v1", Halved)
    calibrator = TagCalibrator("halved").fit(made.P, made.y, made.documents)
    halves = made.P / 2
    assert_allclose(calibrator.transform(made.P), halves)
    assert_allclose(TagCalibrator.from_bytes(calibrator.to_bytes()).transform(made.P), halves)
    with pytest.raises(CalibError, match=r"\[C001\] method must be one of auto, halved, identity"):
        TagCalibrator("nope").fit(made.P, made.y)


def test_documents_need_not_follow_one_another(made):
    # Scalings are fitted by folds of documents, so that they tell whether these were put together again.
    turned = np.argsort(np.arange(600) % 50, kind="stable")  # the first unit of each document, the second of each ...
    parameters = {"method": "platt", "scaling": "vector"}
    wanted = TagCalibrator(**parameters).fit(made.P, made.y, made.documents)
    found = TagCalibrator(**parameters).fit(made.P[turned], made.y[turned], made.documents[turned].astype(str))
    assert_allclose(found.predict_proba(made.P), wanted.predict_proba(made.P), atol=1e-9)


def test_gold_may_be_missing_or_unknown(made):
    y = made.y.astype(object)
    y[:100] = [None, np.nan, "", "PRON"] * 25
    calibrator = TagCalibrator("platt", classes=SCORED_TAGS)
    with pytest.warns(UserWarning, match=r"\[CW21\] 25 units \(4.8 %\) have a gold label that no column has \(PRON\)"):
        calibrator.fit(made.P, y, made.documents)
    assert calibrator.unknown_gold_ == {"PRON": 25}
    report = calibrator.calibration_report(made.P, y, made.documents)
    assert report["tokens"] == 525
    assert TagCalibrator("platt", classes=SCORED_TAGS).fit(made.P[100:], made.y[100:]).unknown_gold_ == {}


@pytest.mark.parametrize("none", [-100, -1, -100.0])
@pytest.mark.parametrize("classes", [SCORED_TAGS, None])
def test_a_negative_number_is_no_gold(made, none, classes):
    """-100, as Hugging Face writes it; also where the labels that are left would be too few to name the columns."""
    y = np.array([SCORED_TAGS.index(label) for label in made.y])
    met = y < 4
    wanted = TagCalibrator("platt", classes=classes or range(5)).fit(made.P[met], y[met], made.documents[met])
    given = np.where(met, y, none)
    calibrator = TagCalibrator("platt", classes=classes).fit(made.P, given, made.documents)
    assert calibrator.unknown_gold_ == {}
    assert calibrator.classes_.tolist() == (classes or list(range(5)))
    assert_allclose(calibrator.transform(made.P), wanted.transform(made.P))
    assert calibrator.score(made.P, given) == pytest.approx(wanted.score(made.P[met], y[met]))
    report = calibrator.calibration_report(made.P, given, made.documents)
    assert report["tokens"] == met.sum()
    assert report["errors"][0] == wanted.calibration_report(made.P[met], y[met], made.documents[met])["errors"][0]
    with pytest.raises(CalibError, match=r"\[C071\]"):
        TagCalibrator("platt").fit(made.P, np.full(600, none))


def test_a_negative_number_may_be_the_name_of_a_class():
    P, y = [[0.9, 0.1], [0.2, 0.8]] * 20, [-1, 1] * 20
    for classes in ([-1, 1], None):  # two columns for -1 and 1: nobody leaves out one of two classes
        calibrator = TagCalibrator("identity", classes=classes).fit(P, y)
        assert calibrator.predict(P[:2]).tolist() == [-1, 1]
        assert calibrator.score(P, y) == pytest.approx((np.log([0.9, 0.8, 0.9, 0.8]) / 4).sum())
    assert TagCalibrator("identity", classes=["-1", "1"]).fit(P, np.array(["-1", "1"] * 20)).unknown_gold_ == {}


def test_labels_may_be_columns_or_numbers(made):
    columns = np.array([SCORED_TAGS.index(label) for label in made.y])
    wanted = TagCalibrator("platt").fit(made.P, made.y)
    assert wanted.classes_.tolist() == SCORED_TAGS
    by_column = TagCalibrator("platt", classes=SCORED_TAGS).fit(made.P, columns)
    assert_array_equal(by_column.predict_proba(made.P), wanted.predict_proba(made.P))
    numbers = TagCalibrator("platt", classes=[7, 3, 5, 9, 1]).fit(made.P, np.array([7, 3, 5, 9, 1])[columns])
    assert_array_equal(numbers.predict(made.P), np.array([7, 3, 5, 9, 1])[wanted.predict_proba(made.P).argmax(axis=1)])
    few = TagCalibrator("platt").fit(made.P[:3], np.array([0, 2, 2]))
    assert few.classes_.tolist() == [0, 1, 2, 3, 4]


def test_the_report_holds_the_figures_of_evaluate(made):
    calibrator = TagCalibrator("isotonic").fit(made.P, made.y, made.documents)
    report = calibrator.calibration_report(made.P, made.y, made.documents, n_bins=5)
    assert report["by"] == {"unit": "document", "n": 12}
    assert [row["group"] for row in report["errors"]] == ["all", "1", "2", "3", "4", "mean"]
    overall = report["errors"][0]
    assert overall["calibrated"] < overall["raw"]
    assert overall["floor"] > 0
    assert set(report["scores"]) == {"ece", "brier", "nll", "smece"}
    assert calibrator.score(made.P, made.y) == pytest.approx(
        -log_loss(made.y, calibrator.predict_proba(made.P), labels=SCORED_TAGS)
    )
    assert calibrator.calibration_report(made.P[:50], made.y[:50])["by"] == {"unit": "unit", "n": 50}
    assert len(calibrator.calibration_report(made.P[:50], made.y[:50], n_groups=1)["errors"]) == 3


def test_an_estimator_works_in_grid_search_pipeline_and_clone(made):
    search = GridSearchCV(TagCalibrator(), {"method": ["identity", "isotonic"]}, cv=GroupKFold(3))
    search.fit(made.P, made.y, groups=made.documents)
    assert search.best_params_ == {"method": "isotonic"}
    softened = make_pipeline(FunctionTransformer(np.sqrt), TagCalibrator("platt", normalize=True)).fit(made.P, made.y)
    assert_allclose(softened.predict_proba(made.P).sum(axis=1), 1)
    copied = clone(TagCalibrator(HistogramBinning(3), tag_offsets=True))
    assert copied.get_params()["method"].n_bins == 3
    assert copied.get_params()["tag_offsets"] is True


def test_data_frames_name_the_columns(made):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(made.P, columns=SCORED_TAGS, index=np.arange(600) + 7)
    calibrator = TagCalibrator("platt").fit(frame, pandas.Series(made.y)).set_output(transform="pandas")
    assert calibrator.classes_.tolist() == SCORED_TAGS
    given = calibrator.transform(frame)
    assert given.columns.tolist() == SCORED_TAGS
    assert given.index[0] == 7
    with pytest.raises(ValueError, match="feature names"):
        calibrator.predict_proba(frame[SCORED_TAGS[::-1]])


def test_where_no_score_reaches_the_threshold_the_likeliest_one_counts():
    P = np.full((60, 200), 0.0049)
    P[:, 3], P[:, 5] = 0.006, 0.02
    y = [5, 6] * 30
    calibrator = TagCalibrator("platt", classes=range(200)).fit(P, y)
    P[0, 5] = 0.0
    assert calibrator.predict(P[:2]).tolist() == [3, 5]
    assert calibrator.transform(P[:1]).sum() == 0
    assert_allclose(calibrator.predict_proba(P[:1]), P[:1] / P[0].sum())
    assert calibrator.predict_proba(np.zeros((1, 200))).tolist() == [[1 / 200] * 200]


@pytest.mark.parametrize(("P", "sentence"), [
    ([[0.5, 1.5]], r"\[C001\] P must be numbers in \[0, 1\], but a range of 0 to 1.5 was given"),
    ([[0.5, -0.1]], r"\[C001\] P must be numbers in \[0, 1\], but a range of -0.1 to 0.5"),
    ([[0.5, np.nan]], r"\[C001\] P must be numbers in \[0, 1\], but NaN was given"),
    ([[0.5, np.inf]], r"\[C001\] P must be numbers in \[0, 1\], but a range of 0 to inf"),
    ([[0.5, 0.4, 0.1]], r"\[C001\] P must be an array of 2 columns, .* of the classes, but one of shape \(1, 3\)"),
    (scipy.sparse.csr_matrix([[0.5, 0.4, 0.1]]), r"\[C001\] P must be an array of 2 columns"),
    (scipy.sparse.csr_matrix([[0.5, 1.4]]), r"\[C001\] P must be numbers in \[0, 1\]"),
    (scipy.sparse.coo_matrix(([0.7, 0.7], ([0, 0], [1, 1])), (1, 2)), r"\[C001\] P must be numbers in \[0, 1\]"),
    (scipy.sparse.csr_matrix([[0.5, 0.4]] * 3), r"\[C002\] TagCalibrator needs one unit for every label, but got 3 and 1"),
    (([0], ["a"], [0.5, 0.5]), r"\[C002\] P needs one row for every score, but got 1 and 2"),
    (([3], ["a"], [0.5]), r"\[C001\] rows must be numbers of units from 0 to 0, but 3 to 3"),
    (([0.5], ["a"], [0.5]), r"\[C001\] rows must be numbers of units, but"),
    (([0], ["q"], [0.5]), says("C294", given="'q'", known="a, b")),
    (([0, 0], ["a", 0], [0.5, 0.5]), r"\[C294\]|\[C001\] P must be one score for each unit and tag"),
    (([0, 0], ["a", "a"], [0.5, 0.5]), r"\[C001\] P must be one score for each unit and tag, but 'a' twice for unit 0"),
    (np.zeros((0, 2)), "minimum of 1 is required"),
    ([0.5, 0.5], "Expected 2D array"),
])  # fmt: skip
def test_scores_that_are_none_are_refused_in_a_sentence(P, sentence):
    with pytest.raises(ValueError, match=sentence):
        TagCalibrator("identity", classes=["a", "b"]).fit(P, ["a"])


@pytest.mark.parametrize(("y", "groups", "sentence"), [
    (["q", "r"], None, says("C296", gold="q, r", known="a, b")),
    ([None, ""], None, says("C071", what="TagCalibrator")),
    (["a"], None, r"\[C002\] TagCalibrator needs one unit for every label, but got 2 and 1"),
    (["a", "b"], ["d"], r"\[C002\] TagCalibrator needs one unit for every group, but got 2 and 1"),
    ([0.5, 1.5], None, "Unknown label type"),
    (None, None, "requires y"),
])  # fmt: skip
def test_gold_that_is_none_is_refused_in_a_sentence(y, groups, sentence):
    with pytest.raises(ValueError, match=sentence):
        TagCalibrator("identity", classes=["a", "b"]).fit([[0.5, 0.5], [0.9, 0.1]], y, groups)


def test_columns_without_names_are_refused():
    with pytest.raises(CalibError, match=says("C295", n_labels=2, n_tags=3)):
        TagCalibrator("identity").fit([[0.5, 0.4, 0.1], [0.9, 0.1, 0.0]], ["a", "b"])


@pytest.mark.parametrize(("parameters", "sentence"), [
    ({"method": "nope"}, r"\[C001\] method must be one of auto, identity, temperature, .*, or a Recalibrator, but 'nope'"),
    ({"method": 3}, r"\[C001\] method"),
    ({"scaling": "nope"}, r"\[C001\] scaling must be one of temperature, vector, matrix, or a Scaling, but 'nope'"),
    ({"method": "auto", "scaling": "vector"}, r"\[C293\] The method 'auto' chooses the scaling by itself"),
    ({"method": "auto", "tag_offsets": True}, r"\[C293\] The method 'auto' chooses the tag_offsets by itself"),
    ({"n_groups": 0}, r"\[C001\] n_groups"),
    ({"threshold": 1.0}, r"\[C001\] threshold"),
    ({"normalize": "all"}, r"\[C001\] normalize"),
    ({"classes": ["a", "a"]}, r"\[C001\] classes must be distinct labels"),
])  # fmt: skip
def test_parameters_out_of_range_are_refused(parameters, sentence):
    with pytest.raises(CalibError, match=sentence):
        TagCalibrator(**{"method": "identity", **parameters}).fit([[0.5, 0.5], [0.9, 0.1]], ["a", "b"])


def test_what_was_not_fitted_cannot_be_asked(made):
    with pytest.raises(NotFittedError):
        TagCalibrator().predict_proba(made.P)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
def test_few_classes_lose_no_more_than_by_scikit_learn(load):
    """Mean log loss of three splits, by scikit-learn's own function: a class that gets 0 would cost 36."""
    frozen = pytest.importorskip("sklearn.frozen", reason="scikit-learn before 1.6 calibrates a fitted model in another way")
    X, y = load(return_X_y=True)
    losses = []
    for seed in range(3):
        X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=seed, stratify=y)
        X_fit, X_test, y_fit, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=seed, stratify=y_rest)
        model = GaussianNB().fit(X_train, y_train)
        by_sklearn = CalibratedClassifierCV(frozen.FrozenEstimator(model)).fit(X_fit, y_fit).predict_proba(X_test)
        calibrator = TagCalibrator().fit(model.predict_proba(X_fit), y_fit)
        probabilities = calibrator.predict_proba(model.predict_proba(X_test))
        losses.append([log_loss(y_test, by_sklearn), log_loss(y_test, probabilities)])
    theirs, ours = np.mean(losses, axis=0)
    assert ours <= theirs + 0.005


def test_of_one_document_a_scaling_is_held_out_too():
    """Labels are drawn from the scores, so that no fit can have a lower loss on tokens that it has not seen."""
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(17, 0.2), 800)
    labels = (probabilities.cumsum(axis=1) > rng.random((800, 1))).argmax(axis=1)
    fitted = TagCalibrator(classes=list(range(17)), method="identity", scaling="matrix").fit(
        probabilities, labels, np.zeros(800)
    )
    assert fitted.held_out_.calibrated > fitted.held_out_.raw
