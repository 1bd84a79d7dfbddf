"""Do the intervals of `select --for expect` hold, and how much narrower are they than those of as many documents at random? As Markdown.

    python scripts/chance_study.py --cache DIR [NAME ...]

The experiments are those of scripts/expect_table.py. Documents of each test set are drawn anew each time, with chances that grow with their doubt
(`corpus.queue.choosing.draw_by_chance`), at random, and a third more of them at random: where the first are as narrow as the last, they save a quarter of
the labels. Beside the share of 95 % intervals that hold the accuracy of the whole set and their mean width stand the error of the estimate (root
mean square) and the words of the documents drawn: doubtful ones are longer. The second table says how much any chances that grow with doubt could save:
those that the residuals of the whole set, known in hindsight, ask for. Tables go to stdout, messages to stderr.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from expect_table import EXPERIMENTS, inside, parser_of, write_experiment
from frame import head, open_scored, row
from study_select_adapt import Texts
from tqdm import tqdm

from spacy_calib.corpus.queue.choosing import chances_of, draw_by_chance
from spacy_calib.expect.survey import accuracy
from spacy_calib.types import Floats

SIZES = (20, 50, 100)
SETS = ("ewt", "wnut17", "ark")
WAYS = {"by chance": 1.0, "at random": 1.0, "at random, a third more": 4 / 3}


def show(title: str, texts: Texts, n: int, draws: int) -> None:
    """Print a row for each way to draw n documents."""
    every, true = np.arange(len(texts.units)), float(texts.right.sum() / texts.units.sum())
    for way, more in WAYS.items():
        found, words = [], []
        for seed in tqdm(range(draws), desc=f"{title}, {n} {way}", leave=False):
            chances = None
            if way == "by chance":
                own, of_all = draw_by_chance(texts.independent, texts.units, n, seed)
                chances = of_all[own]
            else:
                own = np.random.default_rng(seed).choice(every, round(n * more), replace=False)
            found.append(accuracy(texts.survey(own, np.setdiff1d(every, own), chances))[0])
            words.append(texts.units[own].sum())
        held = np.mean([inside(one._asdict(), true) for one in found])
        width = np.mean([one.high - one.low for one in found])
        error = np.sqrt(np.mean([(one.expected - true) ** 2 for one in found]))
        row(
            title,
            len(own),
            way,
            f"{100 * held:.1f}",
            *(f"{100 * value:.2f}" for value in (width, error)),
            f"{np.mean(words):,.0f}",
        )


def saved(texts: Texts) -> tuple[float, float]:
    """The share of the documents that chances save, of few among many: (ours, the best in hindsight)."""
    from sklearn.isotonic import IsotonicRegression

    residual = texts.right - texts.expected
    squares = np.square(residual - texts.units * residual.sum() / texts.units.sum())

    def of(spread: Floats) -> float:
        return float(1 - (squares / chances_of(spread, 1)).mean() / squares.sum())

    best = IsotonicRegression().fit(texts.independent, squares)
    return of(texts.independent), of(best.predict(texts.independent))


def main() -> int:
    options, found = parser_of(__doc__).parse_args(), {}
    head("| test set | documents | drawn | held | width | error | words |", 1)
    with tempfile.TemporaryDirectory() as folder:
        for name in [name for name in options.names if name in SETS or options.names != list(EXPERIMENTS)]:
            _, pipe, files = write_experiment(name, options.cache.resolve(), Path(folder))
            for title in EXPERIMENTS[name].tests:
                found[title] = texts = Texts.of(open_scored(Path(folder) / name, files[title])[2], pipe.groups)
                for n in SIZES:
                    if 2 * n <= len(texts.units):
                        show(title, texts, n, options.draws)
    print()
    head("| test set | documents saved | at best, in hindsight |")
    for title, texts in found.items():
        row(title, *(f"{100 * share:.0f} %" for share in saved(texts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
