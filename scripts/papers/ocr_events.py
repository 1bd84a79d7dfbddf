"""Is the whole word right, and is each letter? After Kuleshov and Liang (2015, section 5): a chain conditional random field reads handwritten
words, and forecasters learn from 1,000 of them when to believe it. Tables as Markdown.

    SPACY_CALIB_DATA=../shared/data python scripts/papers ocr_events --plot words.png --curve sizes.png

Data: ocr_letters (Kassel 1995; 16 x 8 pixels a letter): 2,000 words to train, 2,000 to test, 1,000 to calibrate, drawn by a seed. The field has a
weight for each pixel and letter and one for each pair of letters; scipy's L-BFGS minimizes the negative log likelihood with a ridge, or averaged
subgradients the structured hinge (--loss hinge), which is after right words and not after true probabilities; the ridge, and the C of a linear SVM that sees single letters, are chosen on a fifth of the training words. Each forecaster (k-NN, tree) has its k or least
leaf chosen among 5, 10 ... 500 by ten folds of the calibration words, and so is which of the two; the test words choose nothing.
Intervals: studentised bootstrap by word, of differences on the same words. The numbers of the paper stand beside ours, times 100.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from frame import between, estimated, head, make_parser, new_figure, row, save_figure, save_tables, say, verdict
from numpy.typing import NDArray

from papers.chains.sums import sum_chains
from papers.forecasts.answers import Point, Rows, answer_features, best_answers, columns, position_features, size_curve
from papers.forecasts.forecasters import DecisionTree, Forecaster, NearestNeighbours
from papers.forecasts.letters import Model, Script, alone_of, read_script, train_both
from papers.forecasts.tuning import LossParts, TunedForecaster, choose_best, split_loss, tune
from spacy_calib.metrics import Interval, mean_interval
from spacy_calib.pairs.bins import bin_table, fixed_edges
from spacy_calib.plugins.report.plots import CALIBRATED_COLOR, QUIET, RAW_COLOR, quiet_frame
from spacy_calib.types import Floats, Ints

RAW = "uncalibrated"
# Features of each row of Figure 3, and its number in the paper; those without one are ours.
WORDS: dict[str, tuple[tuple[str, ...], float | None]] = {
    "SVM scores": (("least_alone",), 20.5),
    "length and dictionary": (("length", "known"), 4.2),
    "gap to the second best": (("gap",), 13.1),
    "least marginal": (("least_margin",), 20.6),
    "all features": (("least_alone", "length", "known", "gap", "least_margin"), 4.0),
    "all but the dictionary": (("least_alone", "length", "gap", "least_margin"), None),
}
SINGLE: dict[str, tuple[tuple[str, ...], float | None]] = {
    "SVM scores": (("alone",), 15.8),
    "26 indicators": (("label_",), 16.1),
    "marginals": (("margin",), 12.0),
    "marginals, agreement": (("margin", "agrees"), 10.9),
    "all features": (("alone", "label_", "margin", "agrees", "pseudomargin", "share", "neighbours"), 10.8),
    "pseudomargins": (("pseudomargin",), None),
}
PAPER_RAW = {"words": 21.0, "letters": 30.2}
BOX = (29.5, 13.6)  # Figure 2, the middle: raw, and k-NN with k = 100 on the gap
FORECASTERS: tuple[Forecaster, ...] = (NearestNeighbours(), DecisionTree())


@dataclass(frozen=True, eq=False)
class Events:
    """Questions of one kind. features (dict): Of each. hits: Whether the answer is yes. raw (Floats): What the model says. words (Ints): Of each."""

    features: dict[str, Floats]
    hits: NDArray[np.bool_]
    raw: Floats
    words: Ints

    def rows(self, names: Sequence[str]) -> Rows:
        return Rows(columns(self.features, names), self.hits, self.words)


@dataclass(frozen=True, eq=False)
class Judged:
    """A row of Figure 3. said (Floats): The forecasts of the test events. parts (LossParts): Of their loss. chosen (str): By the calibration words."""

    name: str
    paper: float | None
    said: Floats
    parts: LossParts
    chosen: str


def events_of(model: Model, svm: Any, script: Script, dictionary: set[tuple[int, ...]]) -> dict[str, Events]:
    """Whether each word is right throughout, and each letter."""
    answers = best_answers(sum_chains(model.chains(script)), alone_of(svm, script))
    right = answers.labels == script.labels
    words = np.array([part.all() for part in script.split(right)])
    numbers = np.arange(len(script.lengths))
    fit_rows = answers.marginals[np.arange(len(right)), answers.labels]
    return {
        "words": Events(answer_features(answers, dictionary), words, np.exp(answers.log_chances), numbers),
        "letters": Events(position_features(answers), right, fit_rows, answers.of_position),
    }


# Figures 2, 3 and 4


def judged_row(name: str, paper: float | None, scores: Floats, test: Events, settings: str = "") -> Judged:
    scores = np.clip(scores, 0.0, 1.0)
    return Judged(name, paper, scores, split_loss(scores, test.hits), settings)


def feature_rows(kind: str, fit: Events, test: Events) -> list[Judged]:
    """Figure 3: each set of features by the forecaster that the calibration words choose."""
    rows = [judged_row(RAW, PAPER_RAW[kind], test.raw, test)]
    for name, (names, paper) in {"words": WORDS, "letters": SINGLE}[kind].items():
        fit_rows, test_rows = fit.rows(names), test.rows(names)
        forecasters: list[TunedForecaster] = [
            tune(item, fit_rows.features, fit_rows.hits, fit_rows.units) for item in FORECASTERS
        ]
        best = choose_best(forecasters).forecaster
        settings = f"{best.short}, {best.size}"
        rows.append(judged_row(name, paper, best.predict(test_rows.features), test, settings))
        say(f"{kind}, {name}: {settings}, loss {100 * rows[-1].parts.loss:.1f}")
    return rows


def compare(name: str, better: Judged, worse: Judged, test: Events) -> tuple[str, Interval]:
    """The claim that one row's squared loss is below another's, with the interval of the difference by word."""
    losses = [(item.said - test.hits) ** 2 for item in (better, worse)]
    interval = mean_interval(losses[0] - losses[1], test.words, n_samples=2000)
    assert interval is not None
    return name, interval


def claims(box: Judged, rows: dict[str, list[Judged]], test: dict[str, Events]) -> list[tuple[str, Interval]]:
    words, letters = ({row.name: row for row in rows[kind]} for kind in ("words", "letters"))

    def claim(kind: str, better: str, worse: str, says: str) -> tuple[str, Interval]:
        units = words if kind == "words" else letters
        return compare(f"{kind}: {says}", units[better], units[worse], test[kind])

    return [
        compare("words: k-NN (k = 100) on the gap is better than raw", box, words[RAW], test["words"]),
        claim("words", "length and dictionary", "gap to the second best", "length and dictionary are better than the gap"),
        claim("words", "gap to the second best", "least marginal", "the gap is better than the least marginal"),
        claim("words", "all features", "length and dictionary", "all features are better than length and dictionary"),
        claim("letters", "marginals", RAW, "marginals, calibrated, are better than raw"),
        claim("letters", "marginals", "SVM scores", "marginals are better than SVM scores"),
        claim("letters", "marginals, agreement", "marginals", "agreement adds to marginals"),
        claim("letters", "all features", "marginals, agreement", "all features are better still"),
    ]


def curves(fit: Events, test: Events, sizes: Sequence[int], draws: int, seed: int) -> dict[str, list[Point]]:
    """Figure 4: both forecasters on the margin of the marginals of letters."""
    fit_rows, test_rows = fit.rows(("margin",)), test.rows(("margin",))
    return {
        item.short: size_curve(item, fit_rows, test_rows, sizes, draws, np.random.default_rng(seed)) for item in FORECASTERS
    }


def mean_points(points: Sequence[Point], part: str) -> dict[int, tuple[float, float, float]]:
    """Of each number of words (mean, least, greatest) of the draws. part (str): calibration, or sharpness."""
    return {
        n: (float(np.mean(fit_rows)), min(fit_rows), max(fit_rows))
        for n in sorted({point.units for point in points})
        if (fit_rows := [getattr(point.parts, part) for point in points if point.units == n])
    }


# Output


def show(rows: dict[str, list[Judged]], size_losses: dict[str, dict[str, list[float]]]) -> None:
    for kind, items in rows.items():
        print()
        head(f"| {kind}: features | paper | ours | range over the draws | calibration | sharpness | chosen |")
        for item in items:
            paper, fit_rows = "-" if item.paper is None else f"{item.paper:.1f}", size_losses[kind][item.name]
            spread = between((min(fit_rows), max(fit_rows)), ".1f", 100)
            parts = f"{item.parts.calibration:.4f}", f"{item.parts.sharpness:.4f}"
            row(item.name, paper, f"{100 * item.parts.loss:.1f}", spread, *parts, item.chosen or "-")


def show_claims(items: list[tuple[str, Interval]]) -> None:
    print()
    head("| claim | difference in squared loss x 100, 95 % interval | |")
    for name, item in items:
        row(name, estimated(item, "+.3f", 100), verdict(item))


def show_curves(items: dict[str, list[Point]]) -> None:
    print()
    head("| forecaster | words | calibration | sharpness | sizes chosen |")
    for name, points in items.items():
        error, sharp = (mean_points(points, part) for part in ("calibration", "sharpness"))
        for n in error:
            sizes = sorted(point.size for point in points if point.units == n)
            row(name, f"{n:,}", f"{error[n][0]:.5f}", f"{sharp[n][0]:.4f}", f"{sizes[0]} to {sizes[-1]}")


def draw_rows(path: Path, rows: dict[str, list[Judged]], test: dict[str, Events]) -> None:
    """Figure 3: calibration curves over ten bins of equal width; a dot's area is its share of the events."""
    wide = max(map(len, rows.values()))
    figure = new_figure(1.75 * wide, 4.4)
    axes = figure.subplots(len(rows), wide, sharex=True, sharey=True)
    for line, (kind, items) in zip(axes, rows.items(), strict=True):
        for ax, item in zip(line, items, strict=True):
            table = bin_table(item.said, test[kind].hits.astype(np.float64), fixed_edges(10))
            colour = RAW_COLOR if item.name == RAW else CALIBRATED_COLOR
            ax.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle=":", zorder=0)
            ax.plot(table.mean_score, table.mean_hit, color=colour, linewidth=1)
            ax.scatter(table.mean_score, table.mean_hit, s=6 + 140 * table.counts / table.counts.sum(), color=colour, zorder=3)
            ax.set_title(f"{item.name}\n", fontsize="small")
            scores = "" if item.paper is None else f" (paper {item.paper:.1f})"
            loss, place = f"{100 * item.parts.loss:.1f}{scores}", {"transform": ax.transAxes, "ha": "center"}
            ax.text(0.5, 1.03, loss, **place, fontsize="small", color=QUIET)
            ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
            ax.set_box_aspect(1)
            quiet_frame(ax)
        line[0].set_ylabel(f"{kind}: share right")
    for ax in axes[-1]:
        ax.set_xlabel("forecast", fontsize="small")
    figure.suptitle("Squared loss x 100 over each panel", fontsize="small", color=QUIET)
    save_figure(path, figure, 150)


def draw_curves(path: Path, items: dict[str, list[Point]]) -> None:
    """Figure 4: the two parts over the number of words, mean and range of the draws."""
    figure = new_figure(7.2, 3.0)
    for ax, (name, points) in zip(figure.subplots(1, len(items), sharey=True), items.items(), strict=True):
        for part, colour, marker in (("sharpness", CALIBRATED_COLOR, "s"), ("calibration", RAW_COLOR, "o")):
            means = mean_points(points, part)
            n, values = list(means), np.array(list(means.values()))
            ax.fill_between(n, values[:, 1], values[:, 2], color=colour, alpha=0.2, linewidth=0)
            ax.plot(n, values[:, 0], color=colour, marker=marker, markersize=4)
            title = "calibration error" if part == "calibration" else part
            look = {"xytext": (0, 7), "textcoords": "offset points", "ha": "right", "color": colour, "fontsize": "small"}
            ax.annotate(title, (n[-1], values[-1, 0]), **look)
        ax.set(yscale="log", title=name, xlabel="words in the recalibration set", ylim=(1e-4, 0.3))
        quiet_frame(ax)
    figure.axes[0].set_ylabel("part of the squared loss")
    save_figure(path, figure, 150)


def draw_of(
    script: Script, seed: int, sizes: Sequence[int], loss: str, steps: int
) -> tuple[dict[str, Events], dict[str, Events], dict[str, Events]]:
    """(events of the calibration words, of the test words, of all words that are neither of those to train nor of those to test)."""
    n_train, n_test, n_fit = sizes
    order = np.random.default_rng(seed).permutation(len(script.lengths))
    train_script = script.take(order[:n_train])
    model, svm, settings = train_both(train_script, loss, steps)
    dictionary = set(train_script.words())
    parts = (order[n_train + n_test :][:n_fit], order[n_train : n_train + n_test], order[n_train + n_test :])
    fit, test, rest_events = (events_of(model, svm, script.take(part), dictionary) for part in parts)
    right = {kind: 100 * events.hits.mean() for kind, events in test.items()}
    shares = f"{right['words']:.1f} % of words and {right['letters']:.1f} % of letters right"
    say(f"draw {seed}: {settings}, {len(dictionary)} words known, {shares}")
    return fit, test, rest_events


def make_options() -> argparse.ArgumentParser:
    parser = make_parser(__doc__, output=True, plot=True)
    parser.add_argument("--words", type=int, nargs=3, default=[2000, 2000, 1000], help="to train, to test, to calibrate")
    parser.add_argument("--loss", choices=["likelihood", "hinge"], default="likelihood", help="that the field is trained by")
    splits = "splits of the words; the first is shown, of the others the losses"
    parser.add_argument("--draws", type=int, default=5, help=splits)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200, 500, 1000, 2000], help="words of Figure 4")
    parser.add_argument("--sets", type=int, default=5, help="recalibration sets drawn for each size")
    parser.add_argument("--steps", type=int, default=300, help="of L-BFGS at most, or subgradient steps")
    parser.add_argument("--curve", type=Path, help="PNG or SVG file for Figure 4; --plot is Figure 3")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = make_options().parse_args(arguments)
    script = read_script()
    fit, test, rest_events = draw_of(script, 0, options.words, options.loss, options.steps)
    rows = {kind: feature_rows(kind, fit[kind], test[kind]) for kind in test}
    gap = ("gap",)
    fit_rows, test_rows = fit["words"].rows(gap), test["words"].rows(gap)
    box = judged_row(
        "k-NN, k = 100",
        BOX[1],
        NearestNeighbours().fit(fit_rows.features, fit_rows.hits).predict(test_rows.features),
        test["words"],
    )
    size_losses = {kind: {item.name: [item.parts.loss] for item in items} for kind, items in rows.items()}
    for seed in range(1, options.draws):
        fit_again, test_again, _ = draw_of(script, seed, options.words, options.loss, options.steps)
        for kind in test:
            for item in feature_rows(kind, fit_again[kind], test_again[kind]):
                size_losses[kind][item.name].append(item.parts.loss)
    raw, right = rows["words"][0], {kind: float(events.hits.mean()) for kind, events in test.items()}
    words, letters = (f"{100 * right[kind]:.1f} % of the {kind}" for kind in ("words", "letters"))
    print(f"Right: {words} (paper 45), {letters} (paper 84)")
    losses = f"raw {100 * raw.parts.loss:.1f} (paper {BOX[0]}), k-NN (k = 100) on the gap {100 * box.parts.loss:.1f} (paper {BOX[1]})"
    print(f"\nOut of the box: {losses}")
    show(rows, size_losses)
    claim_rows = claims(box, rows, test)
    show_claims(claim_rows)
    items = curves(rest_events["letters"], test["letters"], options.sizes, options.sets, 0)
    show_curves(items)
    save_tables(options.output)
    if options.plot is not None:
        draw_rows(options.plot, rows, test)
    if options.curve is not None:
        draw_curves(options.curve, items)
    return 0
