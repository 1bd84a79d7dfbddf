"""Naive Bayes against logistic regression, after Nguyen and O'Connor (2015, section 4.1), and spaCy's textcat: raw and calibrated, as Markdown.

    SPACY_CALIB_DATA=../shared/data python scripts/papers polarity_table --plot polarity.png > table.md

The paper tells happy tweets from others; here film reviews are told apart (sentence_polarity: train, dev and test). As in the paper: Bernoulli Naive
Bayes and L2-regularized logistic regression of scikit-learn on binary unigrams, smoothing and regularization chosen by F1 on dev, CalibErr of
P(positive) over adaptive bins of equal size (Algorithm 1), its interval by Algorithm 2. The paper's bins hold 5,000 of 100,000 tweets; here they
hold 200 and 500 of 2,178 snippets. Beside that interval stands one by bootstrap, which takes the noise of the bins off.

Calibrated: fitted on dev, judged on test; the arrays by spacy_calib.TagCalibrator, the textcat by `calib fit --component textcat`, with a threshold of 0:
with two categories each probability counts, however small. spaCy's textcat is a bag of words, trained once into --cache; its epoch is chosen by F1
on dev, too.

Tables go to stdout, messages to stderr. Exit code 1 where the paper's claim does not hold here: raw, Naive Bayes is less calibrated than logistic
regression, and their intervals lie apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from frame import between, data_lines, head, make_parser, new_figure, one_sentence, row, save_figure, save_tables, say
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import fix_random_seed, minibatch

import spacy_calib
from spacy_calib import TagCalibrator
from spacy_calib.cli.shared.writing import write_folder
from spacy_calib.metrics import brier, calibration_error, calibration_error_interval, error_interval, log_loss, noise_floor
from spacy_calib.metrics.calibration_errors import error_of_table, table_of
from spacy_calib.pairs.bins import make_binner
from spacy_calib.plugins.report.plot_data import Curve, share_interval
from spacy_calib.plugins.report.plots import LOOKS, draw_curve, quiet_frame
from spacy_calib.types import Floats

SPLITS = ("train", "dev", "test")
NB, LR, TEXTCAT = "Naive Bayes", "logistic regression", "spaCy textcat"
# What section 4.1.2 and Figure 2 of the paper say, on tweets.
PAPER = {NB: (0.738, 0.1048), LR: (0.729, 0.0409)}
SMOOTHING = (0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
REGULARIZATION = (0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0)
BAG_OF_WORDS = {"@architectures": "spacy.TextCatBOW.v3", "exclusive_classes": True, "ngram_size": 1, "length": 262144, "no_output_layer": False, "nO": None}  # fmt: skip
Hits = NDArray[np.bool_]


@dataclass(frozen=True)
class Snippets:
    """texts (list[str]): Tokens with one space between them. positive (Hits): One for each."""

    texts: list[str]
    positive: Hits


@dataclass(frozen=True)
class Judged:
    """P(positive) of each snippet of test. raw, calibrated (Floats): Before and after. chosen (str): What dev chose."""

    chosen: str
    raw: Floats
    calibrated: Floats


@dataclass(frozen=True)
class Row:
    """A line of the table. errors (dict): CalibErr by size of bins; the figures after it are of the first size.

    sampled (tuple): Interval of Algorithm 2. low, high (float): Of the true error, by bootstrap. floor (float): 95 % quantile of the error of true scores.
    """

    model: str
    scores: str
    f: float
    errors: dict[int, float]
    sampled: tuple[float, float]
    low: float
    high: float
    floor: float
    brier: float
    log_loss: float


def read(split: str) -> Snippets:
    rows = [line.split("\t", 1) for line in data_lines("sentence_polarity", f"{split}.tsv")]
    return Snippets([text for _, text in rows], np.array([label == "pos" for label, _ in rows]))


def f1(predicted: Hits, positive: Hits) -> float:
    """F1 of the positive class."""
    from sklearn.metrics import f1_score

    return float(f1_score(positive, predicted))


# scikit-learn


def classify(data: dict[str, Snippets], make: Callable[[float], Any], values: Sequence[float], name: str) -> Judged:
    """A classifier over binary unigrams, with the value of its one setting that has the best F1 on dev."""
    from sklearn.feature_extraction.text import CountVectorizer

    words = CountVectorizer(binary=True, tokenizer=str.split, token_pattern=None, lowercase=False).fit(data["train"].texts)
    features = {split: words.transform(data[split].texts) for split in SPLITS}

    def on_dev(model: Any) -> float:
        return f1(model.predict(features["dev"]), data["dev"].positive)

    models = [make(value).fit(features["train"], data["train"].positive) for value in values]
    best = max(range(len(values)), key=lambda place: on_dev(models[place]))
    dev, test = (np.asarray(models[best].predict_proba(features[split])) for split in ("dev", "test"))
    calibrated_scores = TagCalibrator(threshold=0.0).fit(dev, data["dev"].positive).transform(test)
    return Judged(f"{name} {values[best]:g}", test[:, 1], np.asarray(calibrated_scores)[:, 1])


def both_classifiers(data: dict[str, Snippets]) -> dict[str, Judged]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import BernoulliNB

    return {
        NB: classify(data, lambda value: BernoulliNB(alpha=value), SMOOTHING, "smoothing"),
        LR: classify(data, lambda value: LogisticRegression(C=value, max_iter=1000), REGULARIZATION, "C ="),
    }


# spaCy


def docs_of(nlp: Language, snippets: Snippets, gold: bool) -> Iterator[Doc]:
    """Docs, with their gold categories where these are wanted."""
    for text, positive in zip(snippets.texts, snippets.positive.tolist(), strict=True):
        doc = Doc(nlp.vocab, words=text.split())
        if gold:
            doc.cats = {"neg": float(not positive), "pos": float(positive)}
        yield doc


def p_positive(docs: Sequence[Doc]) -> Floats:
    return np.array([doc.cats["pos"] for doc in docs])


def train_textcat(data: dict[str, Snippets], epochs: int, seed: int = 0) -> tuple[Language, int]:
    """A pipeline with a textcat, and the epoch after which its F1 on dev was best."""
    fix_random_seed(seed)
    nlp = spacy.blank("en")
    nlp.add_pipe("textcat", config={"model": BAG_OF_WORDS})
    docs_pair = (docs_of(nlp, data["train"], gold) for gold in (False, True))
    examples = [Example(*pair) for pair in zip(*docs_pair, strict=True)]
    optimizer = nlp.initialize(lambda: examples[:200])
    rng = random.Random(seed)
    best, weights, best_epoch = -1.0, b"", 0
    for epoch in range(1, epochs + 1):
        rng.shuffle(examples)
        for batch in minibatch(examples, 64):
            nlp.update(batch, sgd=optimizer, drop=0.2)
        score = f1(p_positive(list(nlp.pipe(docs_of(nlp, data["dev"], False)))) >= 0.5, data["dev"].positive)
        say(f"textcat, epoch {epoch}: F1 on dev {100 * score:.1f}")
        if score > best:
            best, weights, best_epoch = score, nlp.to_bytes(), epoch
    return nlp.from_bytes(weights), best_epoch


def textcat(data: dict[str, Snippets], cache: Path, epochs: int) -> Judged:
    """spaCy's textcat, calibrated on dev as a user would: by `calib fit --component textcat`."""
    folder = cache / "polarity"
    model = folder / f"textcat-{epochs}"
    if not model.exists():
        nlp, best_epoch = train_textcat(data, epochs)
        nlp.meta["notes"] = f"epoch {best_epoch}"
        write_folder(model, nlp.to_disk)
    nlp = spacy.load(model)
    DocBin(docs=docs_of(nlp, data["dev"], True)).to_disk(folder / "dev.spacy")
    spacy_calib.fit(
        model,
        folder / "dev.spacy",
        folder / "calibrated",
        component="textcat",
        overrides={"components.calib.threshold": 0.0},
        force=True,
    )
    calibrated_scores = spacy.load(folder / "calibrated")
    docs = list(calibrated_scores.pipe(docs_of(calibrated_scores, data["test"], False)))
    return Judged(nlp.meta["notes"], p_positive(docs), np.array([doc._.calib_cats["pos"] for doc in docs]))


# Judging


def judge(model: str, kind: str, scores: Floats, positive: Hits, sizes: Sequence[int]) -> Row:
    """All figures of P(positive); each snippet is a document of its own."""
    size = sizes[0]
    errors = {bin_size: calibration_error(scores, positive, bin_size=bin_size) or 0.0 for bin_size in sizes}
    sampled = calibration_error_interval(scores, positive, bin_size=size, n_samples=10_000)
    interval = error_interval(scores, positive, np.arange(len(scores)), bin_size=size)
    floor = noise_floor(scores, bin_size=size)
    losses = brier(scores, positive), log_loss(scores, positive)
    figures: Any = (interval and interval.low, interval and interval.high, floor and floor.q95, *losses)
    return Row(model, kind, f1(scores >= 0.5, positive), errors, sampled or (0.0, 0.0), *figures)


def show(rows: Sequence[Row], classifiers: dict[str, Judged]) -> None:
    """Print the Markdown table, and what dev chose."""
    sizes = list(rows[0].errors)
    errors = " | ".join(f"CalibErr, bins of {size}" for size in sizes)
    head(f"| model | scores | F | {errors} | by sampling | by bootstrap | floor 95 % | Brier | log loss |", 2)
    for model, (f, error) in PAPER.items():
        row(model, "the paper, tweets", f"{100 * f:.1f}", f"{error:.4f}", *"-" * (len(sizes) + 4))
    for item in rows:
        intervals = between(item.sampled), between((item.low, item.high))
        figures = (f"{figure:.4f}" for figure in (item.floor, item.brier, item.log_loss))
        row(
            item.model,
            item.scores,
            f"{100 * item.f:.1f}",
            *(f"{item.errors[size]:.4f}" for size in sizes),
            *intervals,
            *figures,
        )
    print("\nChosen by F1 on dev: " + "; ".join(f"{model}, {item.chosen}" for model, item in classifiers.items()) + ".")


def verdict(rows: Sequence[Row]) -> bool:
    """Print whether the paper's claim holds: raw, Naive Bayes is less calibrated."""
    bayes, logistic = (next(row for row in rows if (row.model, row.scores) == (model, "raw")) for model in (NB, LR))
    is_apart = bayes.low > logistic.high
    print(
        f"\nRaw, Naive Bayes is {'' if is_apart else 'NOT '}less calibrated than logistic regression: "
        f"{bayes.low:.4f} to {bayes.high:.4f} against {logistic.low:.4f} to {logistic.high:.4f}."
    )
    return is_apart


def curve(scores: Floats, positive: Hits, size: int) -> Curve:
    """The calibration curve over bins of this size, as in the paper (section 3.3)."""
    table = table_of(scores, positive, make_binner(bin_size=size))
    low, high = share_interval(table.mean_hit, table.counts)
    mean_score, mean_hit, lows, highs = (item.tolist() for item in (table.mean_score, table.mean_hit, low, high))
    return Curve(error_of_table(table), table.counts.astype(int).tolist(), mean_score, mean_hit, lows, highs, histogram=[])


def draw(path: Path, classifiers: dict[str, Judged], positive: Hits, size: int) -> None:
    """The paper's Figure 2, with the calibrated curve beside the raw one. RAISES CalibError: matplotlib is not installed."""
    figure, title = new_figure(3.3 * len(classifiers) + 0.3, 3.9), f"CalibErr, bins of {size}"
    for ax, (model, item) in zip(figure.subplots(1, len(classifiers), sharey=True), classifiers.items(), strict=True):
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle=":", zorder=0)
        for kind, look in LOOKS.items():
            draw_curve(ax, curve(getattr(item, kind), positive, size), kind, look)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="P(positive)", title=model)
        ax.set_box_aspect(1)
        ax.legend(edgecolor="none", fontsize="small", loc="upper left", title=title, title_fontsize="small")
        quiet_frame(ax)
    figure.axes[0].set_ylabel("share that is positive")
    save_figure(path, figure, 150)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, cache=True, output=True, plot=True)
    sizes = "pairs in a bin; intervals and picture: of the first"
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 500], help=sizes)
    parser.add_argument("--epochs", type=int, default=10, help="of the textcat, at most")
    options = parser.parse_args(arguments)
    data = {split: read(split) for split in SPLITS}
    positive = data["test"].positive
    with one_sentence():
        classifiers = both_classifiers(data) | {TEXTCAT: textcat(data, options.cache, options.epochs)}
        rows = [
            judge(model, kind, getattr(item, kind), positive, options.sizes)
            for model, item in classifiers.items()
            for kind in LOOKS
        ]
        if options.plot is not None:
            draw(options.plot, classifiers, positive, options.sizes[0])
    show(rows, classifiers)
    save_tables(options.output)
    return 0 if verdict(rows) else 1
