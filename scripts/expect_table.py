"""How good is `spacy calib expect`? Expected against true accuracy and F, in domain and out of it, and how often intervals hold the truth.

    python scripts/expect_table.py --cache DIR [NAME ...]

Pipelines are those of the quality benchmark (scripts/quality/models.py), trained once into `<cache>/quality/models/`, and en_core_web_sm;
each is calibrated on its fit part. SPACY_CALIB_DATA names the data; Porttinari, DANTEStocks and PetroGold come from the package
dante-corpora. The first table says for each test set what was expected and what is true, with the verdict of the drift check; how often such
intervals hold is what scripts/expect_splits.py tells. The second draws documents to be labelled, and says how often the 95 % interval of
`expect --gold` holds the true value of the whole set, and how wide it is, each / for the labelled documents alone.
Tables go to stdout, messages to stderr.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from frame import MODEL, between, head, make_parser, row, say
from quality import readers
from quality.models import trained, write_docs
from quality.readers import Documents
from tqdm import tqdm

import spacy_calib
from spacy_calib.cli.shared.loading import open_pipeline
from spacy_calib.cli.shared.scoring import score
from spacy_calib.cli.shared.texts import stream_examples
from spacy_calib.corpus.scored import RIGHT, UNKNOWN, ScoredCorpus
from spacy_calib.doc.annotations import get_annotation
from spacy_calib.expect.drift import Labelled
from spacy_calib.expect.few_labels import Known, Survey, accuracy, entities, known_of
from spacy_calib.expect.record import FitRecord
from spacy_calib.expect.summary import expectations, spans_of, tokens_of
from spacy_calib.types import Ints

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
    "wnut17": Experiment(
        of_recipe("wnut17"), "ner", entities_of("wnut17", "dev"), {"WNUT-17 test *": entities_of("wnut17", "test")},
        train=entities_of("wnut17", "train"),
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Scored:
    """A test set that a calibrated pipeline has read.

    tokens, spans (Labelled), right, span_right (Ints): With whether each is right, -1 where not known. gold (Ints): Gold entities of each document.
    """

    tokens: Labelled
    spans: Labelled
    right: Ints
    span_right: Ints
    gold: Ints

    @classmethod
    def of(cls, corpus: ScoredCorpus, labels: Sequence[str], gold: Ints) -> Scored:
        right = corpus.right[corpus.counted].astype(np.intp)
        return cls(tokens_of(corpus, labels), spans_of(corpus), right, corpus.spans.right.astype(np.intp), gold)

    def true(self) -> dict[str, float | None]:
        """Accuracy, and precision, recall and F of the entities."""
        known = self.right != UNKNOWN
        right, predicted, gold = int((self.span_right == RIGHT).sum()), len(self.span_right), int(self.gold.sum())
        parts = {
            "accuracy": (int((self.right[known] == RIGHT).sum()), int(known.sum())),
            "precision": (right, predicted),
            "recall": (right, gold),
            "f": (2 * right, predicted + gold),
        }
        return {name: part / whole if whole else None for name, (part, whole) in parts.items()}


def read_set(nlp: Any, pipe: Any, file: Path) -> Scored:
    """Run the pipeline over a file."""
    annotation, gold = get_annotation(pipe.fit_info.layer), []

    def counted() -> Iterator[Any]:
        for example in stream_examples(nlp, file):
            gold.append(len(annotation.spans_on(example.reference)))
            yield example

    corpus = score(nlp, pipe, counted())
    return Scored.of(corpus, pipe.lookup.labels(), np.array(gold))


def measures(found: dict[str, Any], true: dict[str, float | None]) -> dict[str, tuple[dict[str, float], float]]:
    """(estimate, true value) by name, where there are both."""
    expected = {"accuracy": found["accuracy"], **(found["entities"] or {})}
    return {
        name: (expected[name], value) for name, value in true.items() if value is not None and expected.get(name) is not None
    }


def inside(estimate: dict[str, float], value: float) -> bool:
    return estimate["low"] <= value <= estimate["high"]


def whole_rows(name: str, scored: Scored, record: FitRecord) -> None:
    """Print a row for each measure."""
    found = expectations(scored.tokens, scored.spans, record, "exact")
    for measure, (estimate, value) in measures(found, scored.true()).items():
        bounds, held = between((estimate["low"], estimate["high"]), ".2f", 100), inside(estimate, value)
        numbers = f"{100 * estimate['expected']:.2f}", bounds, f"{100 * value:.2f}"
        row(name, measure, *numbers, "yes" if held else "no", found["drift"]["verdict"])


def gold_row(title: str, scored: Scored, record: FitRecord, size: int, draws: int) -> None:
    """Print the row of so many labelled documents, drawn from a test set anew each time, as an estimate of the whole set."""
    judged, spans_judged = (np.flatnonzero(right != UNKNOWN) for right in (scored.right, scored.span_right))
    tokens, spans = scored.tokens.take(judged), scored.spans.take(spans_judged)
    known = known_of(tokens, scored.right[judged], spans, scored.span_right[spans_judged], scored.gold, record.entities)
    true, with_tokens = scored.true(), np.unique(tokens.documents)
    rng = np.random.default_rng(size)
    held: dict[str, list[list[bool]]] = {}
    widths: dict[str, list[list[float]]] = {}
    for _ in tqdm(range(draws), desc=f"{title}, {size} labelled", leave=False):
        own = rng.choice(with_tokens, size, replace=False)
        surveys = [survey_of(one, own, np.setdiff1d(with_tokens, own)) for one in known]
        found = {"accuracy": accuracy(surveys[0])} | (entities(surveys[1])[2] if len(surveys) > 1 else {})
        for name, both in found.items():
            held.setdefault(name, []).append([inside(one._asdict(), true[name] or 0.0) for one in both])
            widths.setdefault(name, []).append([one.high - one.low for one in both])
    cells = [
        " / ".join(f"{100 * share:.1f}" for share in np.mean(part[name], axis=0)) if name in held else "-"
        for name in MEASURES
        for part in (held, widths)
    ]
    row(title, size, *cells)


def survey_of(known: Known, own: Ints, others: Ints) -> Survey:
    """The survey whose labelled documents are some of all."""
    few = Known(*(part[own] for part in known))
    return Survey(few, few.observed.sum(axis=0), few.units.sum(axis=0), known.expected[others], known.units[others])


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
    nlp, pipe = open_pipeline(str(folder / name))
    for title, documents in experiment.tests.items():
        files[title] = folder / f"{name}_test_{len(files)}.spacy"
        write_docs(documents(), files[title])
    return nlp, pipe, files


def run(name: str, cache: Path, folder: Path) -> dict[str, tuple[Scored, FitRecord]]:
    """Fit and read an experiment; prints its rows of the first table. RETURNS: What was read, by test set."""
    nlp, pipe, files = write_experiment(name, cache, folder)
    assert pipe.learned.record is not None
    results: dict[str, tuple[Scored, FitRecord]] = {}
    for title in EXPERIMENTS[name].tests:
        scored = read_set(nlp, pipe, files[title])
        whole_rows(title, scored, pipe.learned.record)
        results[title] = (scored, pipe.learned.record)
    return results


def parser_of(about: str | None) -> argparse.ArgumentParser:
    """The options that both scripts have."""
    parser = make_parser(about, EXPERIMENTS, cache=True)
    parser.add_argument("--draws", type=int, default=200, help="draws of each size")
    return parser


def main() -> int:
    options = parser_of(__doc__).parse_args()
    head("| test set | | expected | 95 % interval | true | inside | verdict |", 2)
    results: dict[str, tuple[Scored, FitRecord]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            results |= run(name, options.cache.resolve(), Path(folder))
    print()
    head("| test set | labelled | accuracy | width | precision | width | recall | width | F | width |")
    for title, (scored, record) in results.items():
        for size in LABELLED:
            gold_row(title, scored, record, size, options.draws)
    return 0


if __name__ == "__main__":
    sys.exit(main())
