"""How good is `spacy calib expect`? Expected against true accuracy and F, in domain and out of it, and how often intervals hold the truth.

    python scripts/expect_table.py --cache DIR [NAME ...]

Pipelines are those of the quality benchmark (scripts/quality/models.py), trained once into `<cache>/quality/models/`, and en_core_web_sm;
each is calibrated on its fit part. SPACY_CALIB_DATA names the data; Porttinari, DANTEStocks and PetroGold come from the package
dante-corpora. The first table says for each test set what was expected and what is true, with the verdict of the drift check; how often such
intervals hold is what scripts/expect_splits.py tells. The second draws documents to be labelled, and says how often the 95 % interval of
`expect --gold` holds the true accuracy of the whole set, and how wide it is, each / for the labelled documents alone.
Tables go to stdout, messages to stderr.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from frame import MODEL, between, head, make_parser, open_calibrated, open_scored, row, say
from quality import readers
from quality.models import trained, write_docs
from quality.readers import Documents
from study_select_adapt import Texts
from tqdm import tqdm

import spacy_calib
from spacy_calib.plugins.expect.expect_command import expect
from spacy_calib.plugins.expect.survey import estimate_accuracy

LABELLED = (5, 10, 20, 50)
MEASURES = ("accuracy", "precision", "recall", "f")


@dataclass(frozen=True)
class Experiment:
    """model (Callable): cache -> what is loaded. component (str): Of it. fit (Callable): The documents to fit on. tests (dict): What it is
    judged on, by name; a name that ends in * is of another kind than the fit documents. one_kind (bool): Whether fit and first test documents
    are drawn from one source. train (Callable | None): What the model was trained on, for the familiarity of words.
    """

    model: Callable[[Path], str]
    component: str
    fit: Callable[[], Documents]
    tests: dict[str, Callable[[], Documents]]
    one_kind: bool = False
    train: Callable[[], Documents] | None = None


def of_recipe(name: str) -> Callable[[Path], str]:
    return lambda cache: str(trained(name, cache) / "model-best")


def dante(name: str, part: str) -> Documents:
    return readers.dante(name, readers.PORTTINARI_SHARES if name == "porttinari" else {"all": 1.0})[part]


def wikineural_test(fifth: bool) -> Documents:
    """Every fifth sentence of the test file, or the other ones."""
    documents = readers.entities("wikineural_en", "test")
    return [document for number, document in enumerate(documents) if (number % 5 == 0) == fifth]


def entities_of(name: str, split: str) -> Callable[[], Documents]:
    return lambda: readers.entities(name, split)


EXPERIMENTS = {
    "ewt": Experiment(
        lambda cache: MODEL, "tagger", lambda: readers.ewt("dev", "tags"), {"EWT test": lambda: readers.ewt("test", "tags")}, one_kind=True
    ),
    "porttinari": Experiment(
        of_recipe("porttinari"),
        "morphologizer",
        lambda: dante("porttinari", "fit"),
        {
            "Porttinari test": lambda: dante("porttinari", "test"),
            "PetroGold *": lambda: dante("petrogold", "all"),
            "DANTEStocks *": lambda: dante("dantestocks", "all"),
        },
        one_kind=True,
        train=lambda: dante("porttinari", "train"),
    ),
    # The dev sentences stand between sentences of train, those of test do not: the model is better on dev.
    "wikineural": Experiment(
        of_recipe("wikineural"), "ner", entities_of("wikineural_en", "dev"),
        {"WikiNEuRal test, fitted on dev": entities_of("wikineural_en", "test")}, train=entities_of("wikineural_en", "train"),
    ),
    "wikineural-test": Experiment(
        of_recipe("wikineural"), "ner", lambda: wikineural_test(True),
        {"WikiNEuRal test, fitted on a fifth of it": lambda: wikineural_test(False)}, True, entities_of("wikineural_en", "train"),
    ),
    "ark": Experiment(of_recipe("ark"), "tagger", lambda: readers.ark("dev"), {"ARK test": lambda: readers.ark("test")}, one_kind=True),
    "wnut17": Experiment(
        of_recipe("wnut17"), "ner", entities_of("wnut17", "dev"), {"WNUT-17 test *": entities_of("wnut17", "test")},
        train=entities_of("wnut17", "train"),
    ),
}  # fmt: skip


def inside(estimate: dict[str, float], value: float) -> bool:
    return estimate["low"] <= value <= estimate["high"]


def whole_rows(name: str, found: dict[str, Any]) -> None:
    """Print a row for each measure that there is. found (dict): What `calib expect --check` tells."""
    expected = {"accuracy": found["accuracy"], **(found["entities"] or {})}
    for measure, true in found["true"].items():
        if true is not None and expected.get(measure) is not None:
            estimate, value = expected[measure], true["value"]
            bounds, held = between((estimate["low"], estimate["high"]), ".2f", 100), inside(estimate, value)
            numbers = f"{100 * estimate['expected']:.2f}", bounds, f"{100 * value:.2f}"
            row(name, measure, *numbers, "yes" if held else "no", found["drift"]["verdict"])


def gold_row(title: str, texts: Texts, size: int, draws: int) -> None:
    """Print the row of so many labelled documents, drawn from a test set anew each time, as an estimate of the whole set."""
    every, rng = np.arange(len(texts.units)), np.random.default_rng(size)
    true, held, widths = float(texts.right.sum() / texts.units.sum()), [], []
    for _ in tqdm(range(draws), desc=f"{title}, {size} labelled", leave=False):
        own = rng.choice(every, size, replace=False)
        both = estimate_accuracy(texts.survey(own, np.setdiff1d(every, own)))
        held.append([inside(one._asdict(), true) for one in both])
        widths.append([one.high - one.low for one in both])
    shares = (np.mean(part, axis=0) for part in (held, widths))
    row(title, size, *(" / ".join(f"{100 * one:.1f}" for one in share) for share in shares))


def write_experiment(name: str, cache: Path, folder: Path) -> tuple[Any, Any, dict[str, Path]]:
    """Fit an experiment. RETURNS: The pipeline, its calib pipe, and the files of documents: "fit", and each test set by its title."""
    experiment = EXPERIMENTS[name]
    files, train = {"fit": folder / f"{name}_fit.spacy"}, None
    write_docs(experiment.fit(), files["fit"])
    if experiment.train is not None:
        train = folder / f"{name}_train.spacy"
        write_docs(experiment.train(), train)
    say(f"Fitting {name} ...")
    options = {"component": experiment.component, "train_data": train, "silent": True}
    spacy_calib.fit(experiment.model(cache), files["fit"], folder / name, **options)
    nlp, pipe = open_calibrated(folder / name)
    for title, documents in experiment.tests.items():
        files[title] = folder / f"{name}_test_{len(files)}.spacy"
        write_docs(documents(), files[title])
    return nlp, pipe, files


def run(name: str, cache: Path, folder: Path) -> dict[str, Texts]:
    """Fit and read an experiment; prints its rows of the first table. RETURNS: What was read, by test set."""
    _, pipe, files = write_experiment(name, cache, folder)
    results: dict[str, Texts] = {}
    for title in EXPERIMENTS[name].tests:
        whole_rows(title, expect(str(folder / name), files[title], check=True))
        results[title] = Texts.of(open_scored(folder / name, files[title])[2], pipe.groups)
    return results


def parser_of(about: str | None) -> argparse.ArgumentParser:
    """The options that both scripts have."""
    parser = make_parser(about, EXPERIMENTS, cache=True)
    parser.add_argument("--draws", type=int, default=200, help="draws of each size")
    return parser


def main() -> int:
    options = parser_of(__doc__).parse_args()
    head("| test set | | expected | 95 % interval | true | inside | verdict |", 2)
    results: dict[str, Texts] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            results |= run(name, options.cache.resolve(), Path(folder))
    print()
    head("| test set | labelled | accuracy | width |")
    for title, texts in results.items():
        for size in LABELLED:
            gold_row(title, texts, size, options.draws)
    return 0


if __name__ == "__main__":
    sys.exit(main())
