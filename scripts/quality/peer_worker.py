"""The peers, and what fits one method of one of them on a data set's folder and writes the calibrated scores of the test pairs.

    <environment of the peer>/bin/python -I peer_worker.py FOLDER --peer P --method M --kind K --how H --scores S.npy --report R.json

Runs inside the environment of the peer (see peers.py): it imports numpy and the peer, nothing else. PEERS is the whole list; the files of
FOLDER are described in Data. Kinds of methods:

- binary: fits (score, hit) of pairs: "pooled" one map, "per group" one for each TFG-5 group. A group whose fit pairs are all hits or all
  misses, or that has none, takes the pooled map.
- multiclass: fits the n x K matrix of the model's outputs with the gold column of each token; the calibrated n x K matrix is read at the
  test pairs. Tokens whose gold the model does not know have no column to fit, so they are left out (as pairs, binary methods count
  them as misses).
- multiclass, seen: the same for methods that cannot do with a class without a token in the fit data (they stop, or call it impossible,
  which costs an infinite log loss at its first hit). They get the columns of the other classes, and the pairs of those without a
  token keep their raw scores.
- features: fits (numbers, categories, hit) of pairs: "tag and ending" gives the score, the tag, the likeliest tag of the token and its last
  characters; "everything" the rival's score, the entropy, the form, its shape and the neighbours' likeliest tags too.

Calibrated scores that are no probabilities are a failure; so is an exception. The report says why, and how long fit and predict took
without imports and reading.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROUNDING = 1e-6  # scores may pass 0 or 1 by as much, and are clipped
N_BINS = 10
LEAVES, ROUNDS = (8, 31), 200  # of the trees and of their number, to choose from
CLIPS = (1e-6, 1e-4, 1e-3, 1e-2)  # how far scores are kept from 0 and 1 for a peer that extreme ones stop, to choose from

Predict = Callable[..., np.ndarray]
Fit = Callable[..., Predict]


class Data:
    """The arrays of a data set's folder, read when they are asked for: data["fit_scores"] is fit_scores.npy.

    Of fit and of test: logits (n_tokens, n_labels), float32; gold (n_tokens,), the column of the gold label, -1 for one that the model
    does not know, -2 for none; documents, forms and endings (hashes), and shapes (1 in title case, plus 2 like a number) of each token;
    starts, the first token of each Doc and the end of the last; and of each pair with a score of 0.01 or more, n_pairs long: rows (its row
    in logits), tags (its column), scores, hits and groups.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.read: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.read:
            self.read[name] = np.load(self.folder / f"{name}.npy")
        return self.read[name]


def softmax(logits: np.ndarray) -> np.ndarray:
    """Rows that sum to 1, float64, of logits of shape (n, k)."""
    exponentials = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def log_odds(scores: np.ndarray) -> np.ndarray:
    """log(p / (1 - p)) of probabilities, which are kept 1e-12 away from 0 and 1."""
    clipped = np.clip(scores, 1e-12, 1 - 1e-12)
    return np.log(clipped) - np.log1p(-clipped)


def two_columns(scores: np.ndarray) -> np.ndarray:
    """P(miss), P(hit) of n pairs, shape (n, 2)."""
    return np.column_stack([1 - scores, scores])


# Features of pairs: (numbers, categories) of shapes (n_pairs, a) and (n_pairs, b); a number that is not there is NaN, a category -1.


def pair_features(data: Data, part: str, how: str) -> tuple[np.ndarray, np.ndarray]:
    """What `how` gives."""
    rows, tags = data[f"{part}_rows"], data[f"{part}_tags"]
    chances = softmax(data[f"{part}_logits"])
    leading = chances.argmax(axis=1)
    numbers, categories = [log_odds(data[f"{part}_scores"])], [tags, leading[rows], data[f"{part}_endings"][rows]]
    if how == "everything":
        second, first = np.partition(chances, -2, axis=1)[:, -2:].T
        entropy = -(chances * np.log(np.maximum(chances, 1e-12))).sum(axis=1)
        numbers += [log_odds(np.where(tags == leading[rows], second[rows], first[rows])), entropy[rows]]
        shapes = data[f"{part}_shapes"][rows]
        numbers += [shapes & 1, shapes >> 1]
        categories += [neighbour[rows] for neighbour in neighbours(leading, data[f"{part}_starts"])]
        categories += [data[f"{part}_forms"][rows]]
    return np.column_stack(numbers), np.column_stack([column.astype(np.int64) for column in categories])


def neighbours(values: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What stands before and after each token in its Doc; -1 where nothing does."""
    previous, following = np.roll(values, 1), np.roll(values, -1)
    previous[starts[:-1]] = following[starts[1:] - 1] = -1
    return previous, following


def common_values(column: np.ndarray, n_values: int) -> np.ndarray:
    """The `n_values` most frequent values, ascending."""
    values, counts = np.unique(column, return_counts=True)
    return np.sort(values[np.argsort(-counts, kind="stable")[:n_values]])


def encode(column: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The place of each entry among ascending values; NaN where it is none of them."""
    place = np.searchsorted(values, column).clip(0, len(values) - 1)
    return np.where(values[place] == column, place, np.nan)


# Adapters: method -> fit. Binary and multiclass: fit(X, y) -> predict, predict(X) -> what X becomes; X is the scores of pairs, shape
# (n_pairs,), and y their hits, or X is the logits or probabilities of tokens, and y the column of the gold label of each row. Features:
# fit(numbers, categories, hits, documents) -> predict(numbers, categories) -> scores; the first number is the log-odds of the score.


def estimator(
    make: Callable[[int], Any],
    prepare: Callable[[np.ndarray], np.ndarray] = np.asarray,
    take: Callable[[Any], np.ndarray] = np.asarray,
    calls: tuple[str, str] = ("fit", "predict_proba"),
    **keywords: Any,
) -> Fit:
    """fit and predict of an object of a peer. make: Number of rows -> an unfitted one. prepare, take: What it is given of X, and what of its answer
    counts. calls (tuple): Its methods. keywords: Of its fit."""

    def fit(X: np.ndarray, y: np.ndarray) -> Predict:
        calibrator = make(len(X))
        getattr(calibrator, calls[0])(prepare(X), y.astype(int), **keywords)
        return lambda X: take(getattr(calibrator, calls[1])(prepare(X))).reshape(X.shape)

    return fit


def of_hits(chances: Any) -> np.ndarray:
    """P(hit) of the columns P(miss), P(hit)."""
    return np.asarray(chances)[:, 1]


class ScikitLearn:
    """A CalibratedClassifierCV of this method over a prefit classifier whose `outputs` (the method that scikit-learn asks) are its input."""

    def __init__(self, outputs: str, method: str):
        self.outputs, self.method = outputs, method

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        classifier = FrozenEstimator(pass_through_classifier(self.outputs, X.shape[1]))
        self.predict_proba = CalibratedClassifierCV(classifier, method=self.method).fit(X, y).predict_proba


def pass_through_classifier(outputs: str, n: int) -> Any:
    """A fitted classifier of scikit-learn whose input is its output. outputs (str): The method that is asked. n (int): Classes."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    class PassThroughClassifier(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            raise NotImplementedError("It is given, not fitted.")

        def predict(self, X):
            return X.argmax(axis=1)

    def return_input(self, X):
        return X[:, 1] if outputs == "decision_function" and X.shape[1] == 2 else X

    return_input.__name__ = outputs  # scikit-learn goes by it
    setattr(PassThroughClassifier, outputs, return_input)
    classifier = PassThroughClassifier()
    classifier.classes_, classifier.n_features_in_ = np.arange(n), n
    return classifier


def scikit_learn_binary(method: str) -> Fit:
    if method == "isotonic":
        return estimator(lambda n: ScikitLearn("predict_proba", method), two_columns, of_hits)
    return estimator(lambda n: ScikitLearn("decision_function", method), lambda p: np.outer(log_odds(p), [-1, 1]), of_hits)


def scikit_learn_multiclass(method: str) -> Fit:
    name, _, input_kind = method.partition(" on ")
    return estimator(lambda n: ScikitLearn("predict_proba" if input_kind == "probabilities" else "decision_function", name))


def scikit_learn_features(method: str) -> Fit:
    """Gradient boosting; leaves and rounds are those with the least log loss on documents held out of the fit data."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import GroupKFold

    most_values = 254  # of a category: the histograms have room for no more beside the missing ones

    def fit(numbers: np.ndarray, categories: np.ndarray, hits: np.ndarray, documents: np.ndarray) -> Predict:
        values_of_columns = [common_values(column, most_values) for column in categories.T]

        def table(numbers: np.ndarray, categories: np.ndarray) -> np.ndarray:
            return np.column_stack(
                [numbers, *(encode(column, values) for column, values in zip(categories.T, values_of_columns, strict=True))]
            )

        def make(leaves: int, rounds: int) -> Any:
            category_columns = range(numbers.shape[1], numbers.shape[1] + len(values_of_columns))
            return HistGradientBoostingClassifier(
                learning_rate=0.1, max_iter=rounds, max_leaf_nodes=leaves, l2_regularization=1.0,
                early_stopping=False, categorical_features=list(category_columns), random_state=0,
            )  # fmt: skip

        X, y = table(numbers, categories), hits.astype(int)
        losses = {leaves: np.zeros(ROUNDS) for leaves in LEAVES}
        for train, test in GroupKFold(5).split(X, y, documents):
            for leaves, sums in losses.items():
                stages = make(leaves, ROUNDS).fit(X[train], y[train]).staged_predict_proba(X[test])
                sums -= [np.log(stage[np.arange(len(test)), y[test]] + 1e-12).sum() for stage in stages]
        best = min(losses, key=lambda leaves: losses[leaves].min())
        model = make(best, int(losses[best].argmin()) + 1).fit(X, y)
        return lambda numbers, categories: model.predict_proba(table(numbers, categories))[:, 1]

    return fit


def mcgrad_features(method: str) -> Fit:
    """With the package's own settings, which choose the number of rounds by cross-validation. Where scores are very sure, its first round finds no
    gradient and it gives them back; so that they are cut off first, where is chosen by the same cross-validation.
    """
    import pandas
    from mcgrad import methods

    def fit(numbers: np.ndarray, categories: np.ndarray, hits: np.ndarray, documents: np.ndarray) -> Predict:
        values_of_columns = [np.unique(column) for column in categories.T]
        names = [f"number{i}" for i in range(1, numbers.shape[1])], [f"category{i}" for i in range(len(values_of_columns))]
        columns = {"categorical_feature_column_names": names[1], "numerical_feature_column_names": names[0]}

        def table(numbers: np.ndarray, categories: np.ndarray, clip: float) -> Any:
            made = {"score": np.clip(1 / (1 + np.exp(-numbers[:, 0])), clip, 1 - clip)}
            made |= dict(zip(names[0], numbers.T[1:], strict=True))
            codes = (encode(column, values) for column, values in zip(categories.T, values_of_columns, strict=True))
            return pandas.DataFrame(made | dict(zip(names[1], codes, strict=True)))

        models_by_loss = {}
        for clip in CLIPS:
            made = getattr(methods, method)()
            made.fit(table(numbers, categories, clip).assign(hit=hits.astype(int)), "score", "hit", **columns)
            models_by_loss[min(made.performance_metrics["avg_valid_performance_log_loss"])] = clip, made
        best, model = models_by_loss[min(models_by_loss)]
        return lambda numbers, categories: model.predict(table(numbers, categories, best), "score", **columns)

    return fit


def netcal(method: str) -> Fit:
    from netcal import binning, scaling

    calls = ("fit", "transform")
    if method == "HistogramBinning":
        return estimator(lambda n: binning.HistogramBinning(bins=N_BINS), calls=calls)
    if hasattr(binning, method):
        return estimator(lambda n: getattr(binning, method)(), calls=calls)
    # By itself the scaling writes TensorBoard logs.
    return estimator(lambda n: getattr(scaling, method)(), calls=calls, tensorboard=False, random_state=0)


def probmetrics_make(method: str) -> Callable[[int], Any]:
    """What makes an unfitted calibrator: its factory's name, with its mixture (Laplace smoothing) or not, or a class."""
    from probmetrics import calibrators

    if method.startswith(("ETS", "VectorScaling")):
        return lambda n: getattr(calibrators, method)()
    name, _, mixture = method.partition(" + ")
    return lambda n: calibrators.get_calibrator(name, calibrate_with_mixture=bool(mixture))


def probmetrics_binary(method: str) -> Fit:
    return estimator(probmetrics_make(method), two_columns, of_hits)


def probmetrics_multiclass(method: str) -> Fit:
    return estimator(probmetrics_make(method))


class Peer(NamedTuple):
    """A package to compare with.

    packages (tuple): What pip installs, one step after the other; a step is a tuple of requirements.
    methods (dict): Kind -> (adapter, the peer's methods of this kind).
    """

    packages: tuple[tuple[str, ...], ...]
    methods: dict[str, tuple[Callable[[str], Fit], tuple[str, ...]]]


NUMBERS = ("numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1")
TORCH = "torch==2.13.0"  # installed first and alone, so that the CPU build of an index set up for it is taken
_BOTH = ("logits", "probabilities")
PEERS: dict[str, Peer] = {
    "scikit-learn": Peer((NUMBERS,), {
        "binary": (scikit_learn_binary, ("sigmoid", "isotonic", "temperature")),
        "multiclass, seen": (scikit_learn_multiclass, (
            *(f"{name} on {given}" for name in ("sigmoid", "isotonic") for given in _BOTH), "temperature on logits",
        )),
        "features": (scikit_learn_features, ("HistGradientBoostingClassifier",)),
    }),
    "mcgrad": Peer((("mcgrad==0.1.5", *NUMBERS),), {"features": (mcgrad_features, ("MCGrad",))}),
    "netcal": Peer(((TORCH,), ("netcal==1.4.0", *NUMBERS)), {
        "binary": (netcal, (
            "HistogramBinning", "IsotonicRegression", "BBQ", "LogisticCalibration", "ENIR", "BetaCalibration", "TemperatureScaling",
        )),
        "multiclass": (netcal, ("TemperatureScaling",)),
        "multiclass, seen": (netcal, ("IsotonicRegression", "LogisticCalibration")),
    }),
    "probmetrics": Peer(((TORCH,), ("probmetrics==1.3.0", "numba==0.68.1", *NUMBERS)), {
        "binary": (probmetrics_binary, ("affine-scaling", "quadratic-scaling", "isotonic")),
        "multiclass": (probmetrics_multiclass, (
            "temp-scaling", "ts-mix", "svs", "svs + mixture", "sms", "sms + mixture",
            "ETSCalibrator", "VectorScalingCalibrator",
        )),
    }),
}  # fmt: skip


class Clock:
    """Seconds spent in fit and in predict."""

    def __init__(self) -> None:
        self.fit = self.predict = 0.0

    def measure(self, phase: str, function: Callable[..., Any], *arguments: np.ndarray) -> Any:
        start = time.perf_counter()
        result = function(*arguments)
        setattr(self, phase, getattr(self, phase) + time.perf_counter() - start)
        return result


def run_binary(data: Data, fit: Fit, how: str, clock: Clock) -> np.ndarray:
    """Calibrated scores of the test pairs."""
    scores, hits = data["fit_scores"], data["fit_hits"]
    if how == "pooled":
        return clock.measure("predict", clock.measure("fit", fit, scores, hits), data["test_scores"])
    calibrated_scores = np.full(len(data["test_scores"]), np.nan)
    without = np.zeros(len(calibrated_scores), dtype=bool)
    for group in np.unique(data["test_groups"]):
        fit_rows, test_rows = data["fit_groups"] == group, data["test_groups"] == group
        if len(np.unique(hits[fit_rows])) < 2:
            without |= test_rows
            continue
        predict = clock.measure("fit", fit, scores[fit_rows], hits[fit_rows])
        calibrated_scores[test_rows] = clock.measure("predict", predict, data["test_scores"][test_rows])
    if without.any():
        calibrated_scores[without] = clock.measure(
            "predict", clock.measure("fit", fit, scores, hits), data["test_scores"][without]
        )
    return calibrated_scores


def run_multiclass(data: Data, fit: Fit, how: str, clock: Clock) -> np.ndarray:
    """Calibrated scores of the test pairs, out of the calibrated matrix.

    how (str): "all" gives the method all columns, "seen" those of the labels with a gold token in the fit data; behind " of " stands what
        it is given, logits or probabilities.
    """
    label_set, _, input_kind = how.partition(" of ")
    gold = data["fit_gold"]
    has_column = gold >= 0
    n_labels = data["fit_logits"].shape[1]
    columns = np.unique(gold[has_column]) if label_set == "seen" else np.arange(n_labels)
    place = np.full(n_labels, -1)
    place[columns] = np.arange(len(columns))

    def matrix(logits: np.ndarray) -> np.ndarray:
        values = logits.astype(np.float64)
        return (values if input_kind == "logits" else softmax(values))[:, columns]

    predict = clock.measure("fit", fit, matrix(data["fit_logits"][has_column]), place[gold[has_column]])
    test_matrix = matrix(data["test_logits"])
    calibrated_matrix = np.asarray(clock.measure("predict", predict, test_matrix))
    if calibrated_matrix.shape != test_matrix.shape:
        raise ValueError(f"The calibrated matrix has shape {calibrated_matrix.shape}, not {test_matrix.shape}.")
    test_columns = place[data["test_tags"]]
    return np.where(test_columns >= 0, calibrated_matrix[data["test_rows"], test_columns], data["test_scores"])


def run_features(data: Data, fit: Fit, how: str, clock: Clock) -> np.ndarray:
    """Calibrated scores of the test pairs by a method that looks at their tokens."""
    fit_features = pair_features(data, "fit", how)
    predict = clock.measure("fit", fit, *fit_features, data["fit_hits"], data["fit_documents"][data["fit_rows"]])
    return clock.measure("predict", predict, *pair_features(data, "test", how))


RUNS = {"binary": run_binary, "multiclass": run_multiclass, "features": run_features}


def as_probabilities(scores: np.ndarray, n_pairs: int) -> np.ndarray:
    """The scores as float64 in [0, 1], rounding errors cut off.

    RAISES ValueError: another shape, or values that are no probabilities.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n_pairs,):
        raise ValueError(f"The calibrated scores have shape {values.shape}, not {(n_pairs,)}.")
    wrong = ~((values >= -ROUNDING) & (values <= 1 + ROUNDING))  # true for NaN
    if wrong.any():
        raise ValueError(f"Not a probability: {int(wrong.sum())} of {n_pairs} scores, the first is {values[wrong][0]}.")
    return np.clip(values, 0.0, 1.0)


def run(data: Data, peer: str, method: str, kind: str, how: str) -> tuple[np.ndarray, float]:
    """The calibrated scores of the test pairs, and the seconds of fit and predict."""
    family, _, columns = kind.partition(", ")
    fit, clock = PEERS[peer].methods[kind][0](method), Clock()
    if family == "multiclass":
        how = f"{columns or 'all'} of {method.partition(' on ')[2] or 'probabilities'}"
    scores = as_probabilities(RUNS[family](data, fit, how, clock), len(data["test_scores"]))
    return scores, round(clock.fit, 3) + round(clock.predict, 3)


def limit_memory(gigabytes: float) -> None:
    """Let what needs more address space fail with a MemoryError, where the system can."""
    try:
        import resource
    except ImportError:
        return
    size = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="Folder of a data set")
    for name in ("peer", "method", "kind", "how"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--scores", type=Path, required=True, help="Where to write the calibrated scores")
    parser.add_argument("--report", type=Path, required=True, help="Where to write what happened, as JSON")
    options = parser.parse_args()
    limit_memory(16)
    warnings.simplefilter("ignore")
    np.random.seed(0)
    report: dict[str, object] = {"version": version(options.peer), "failure": ""}
    try:
        scores, report["seconds"] = run(Data(options.folder), options.peer, options.method, options.kind, options.how)
        np.save(options.scores, scores)
    except Exception as error:
        traceback.print_exc()
        report["failure"] = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
    options.report.write_text(json.dumps(report) + "\n", encoding="utf8")
    return int(bool(report["failure"]))


if __name__ == "__main__":
    raise SystemExit(main())
