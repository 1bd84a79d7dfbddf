"""How good is `spacy calib expect`? Expected against true accuracy and F, in domain and out of it, and how often intervals hold the truth.

    python scripts/expect_table.py --cache DIR [NAME ...]

Pipelines are those of the quality benchmark (scripts/quality/models.py), trained once into `<cache>/quality/models/`, and en_core_web_sm;
each is calibrated on its fit part. SPACY_CALIB_DATA names the data; Porttinari, DANTEStocks and PetroGold come from the package
dante-corpora. The first table says for each test set what was expected and what is true, with the verdict of the drift check. The second
draws documents of the test sets at random, and says how often the 95 % interval holds the true value, and how often each verdict is given;
all draws share one fit, and with it the luck of that fit: scripts/expect_splits.py fits anew. The third draws documents to be labelled, and says
how often the 95 % interval of `expect --gold` holds the true value of the whole set, and how wide it is, each / for the labelled documents alone.
Tables go to stdout, messages to stderr.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from frame import MODEL, default_cache, say
from quality import readers
from quality.models import trained, write_docs
from quality.readers import Documents
from tqdm import tqdm

from spacy_calib.cli.fit import fit
from spacy_calib.cli.shared.examples import Pass
from spacy_calib.cli.shared.loading import open_pipeline
from spacy_calib.cli.shared.scoring import score
from spacy_calib.cli.shared.texts import stream_examples
from spacy_calib.corpus.scored import RIGHT, UNKNOWN, ScoredCorpus
from spacy_calib.doc.annotations import get_annotation
from spacy_calib.expect.drift import Labelled
from spacy_calib.expect.few_labels import known_of
from spacy_calib.expect.prediction_powered import Known, Survey, accuracy, entities
from spacy_calib.expect.record import FitRecord
from spacy_calib.expect.summary import expectations, spans_of, tokens_of
from spacy_calib.types import Ints

SIZES = (10, 30, 100)
LABELLED = (5, 10, 20, 50)
VERDICTS = ("like the fit data", "differs from the fit data", "too few texts to tell")


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


WIKINEURAL_NAME = "wikineural"
EXPERIMENTS = {
    "ewt": Experiment(
        lambda cache: MODEL,
        "tagger",
        lambda: readers.ewt("dev", "tags"),
        {"EWT test": lambda: readers.ewt("test", "tags")},
        one_kind=True,
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
        of_recipe(WIKINEURAL_NAME),
        "ner",
        lambda: readers.entities("wikineural_en", "dev"),
        {"WikiNEuRal test, fitted on dev": lambda: readers.entities("wikineural_en", "test")},
        train=lambda: readers.entities("wikineural_en", "train"),
    ),
    "wikineural-test": Experiment(
        of_recipe(WIKINEURAL_NAME),
        "ner",
        lambda: wikineural_test(True),
        {"WikiNEuRal test, fitted on a fifth of it": lambda: wikineural_test(False)},
        one_kind=True,
        train=lambda: readers.entities("wikineural_en", "train"),
    ),
    "wnut17": Experiment(
        of_recipe("wnut17"),
        "ner",
        lambda: readers.entities("wnut17", "dev"),
        {"WNUT-17 test *": lambda: readers.entities("wnut17", "test")},
        train=lambda: readers.entities("wnut17", "train"),
    ),
}


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

    def take(self, documents: Ints) -> Scored:
        """Some documents of it."""
        wanted = np.zeros(self.tokens.n_docs, dtype=bool)
        wanted[documents] = True
        own, own_spans = (np.flatnonzero(wanted[part.documents]) for part in (self.tokens, self.spans))
        return Scored(
            self.tokens.take(own),
            self.spans.take(own_spans),
            self.right[own],
            self.span_right[own_spans],
            self.gold * wanted,
        )

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


def read_set(nlp: Any, pipe: Any, file: Path, what: str) -> Scored:
    """Run the pipeline over a file."""
    annotation, gold = get_annotation(pipe.fit_info.layer), []

    def counted() -> Iterator[Any]:
        for example in stream_examples(nlp, file):
            gold.append(len(annotation.spans_on(example.reference)))
            yield example

    corpus = score(nlp, pipe, counted(), Pass(silent=False, what=what))
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
        print(
            f"| {name} | {measure} | {100 * estimate['expected']:.2f} | {100 * estimate['low']:.2f} to {100 * estimate['high']:.2f} "
            f"| {100 * value:.2f} | {'yes' if inside(estimate, value) else 'no'} | {found['drift']['verdict']} |",
            flush=True,
        )


def subset_row(name: str, scored: Scored, record: FitRecord, size: int, draws: int) -> str:
    """The row of subsets of one size."""
    rng = np.random.default_rng(size)
    with_tokens = np.unique(scored.tokens.documents)
    held: dict[str, list[bool]] = {}
    widths: list[float] = []
    verdicts: Counter[str] = Counter()
    for _ in tqdm(range(draws), desc=f"{name}, {size} documents", leave=False):
        part = scored.take(rng.choice(with_tokens, size, replace=False))
        found = expectations(part.tokens, part.spans, record, "exact")
        verdicts[found["drift"]["verdict"]] += 1
        widths.append(found["accuracy"]["high"] - found["accuracy"]["low"])
        for measure, (estimate, value) in measures(found, part.true()).items():
            held.setdefault(measure, []).append(inside(estimate, value))
    cells = [f"{100 * np.mean(held[one]):.1f}" if one in held else "-" for one in ("accuracy", "precision", "recall", "f")]
    shares = [f"{100 * verdicts[one] / draws:.0f}" for one in VERDICTS]
    return f"| {name} | {size} | {100 * np.mean(widths):.1f} | {' | '.join(cells)} | {' / '.join(shares)} |"


def gold_row(title: str, scored: Scored, record: FitRecord, size: int, draws: int) -> str:
    """The row of so many labelled documents, drawn from a test set anew each time, as an estimate of the whole set."""
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
        for name in ("accuracy", "precision", "recall", "f")
        for part in (held, widths)
    ]
    return f"| {title} | {size} | {' | '.join(cells)} |"


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
    fit(
        experiment.model(cache),
        files["fit"],
        folder / name,
        component=experiment.component,
        train_data=train,
        silent=True,
    )
    nlp, pipe = open_pipeline(str(folder / name), None, code=None, gpu_id=-1)
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
        scored = read_set(nlp, pipe, files[title], title)
        whole_rows(title, scored, pipe.learned.record)
        results[title] = (scored, pipe.learned.record)
    return results


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The options that both scripts have."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"Experiments, of {', '.join(EXPERIMENTS)}; all where none is named"
    )
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for the models that are trained")
    parser.add_argument("--draws", type=int, default=200, help="Draws of each size")
    return parser


def options_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of the command line. Ends the program where an experiment is unknown."""
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in EXPERIMENTS]
    if unknown:
        raise SystemExit(f"There is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}.")
    options.names = options.names or list(EXPERIMENTS)
    options.cache = options.cache.resolve()
    return options


def main() -> int:
    options = options_of(parser_of(__doc__))
    print("| test set | | expected | 95 % interval | true | inside | verdict |\n| --- | --- | --- | --- | --- | --- | --- |")
    results: dict[str, tuple[Scored, FitRecord]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            results |= run(name, options.cache, Path(folder))
    print("\n| test set | documents | width | accuracy | precision | recall | F | like / differs / too few |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for title, (scored, record) in results.items():
        for size in SIZES:
            print(subset_row(title, scored, record, size, options.draws), flush=True)
    print("\n| test set | labelled | accuracy | width | precision | width | recall | width | F | width |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for title, (scored, record) in results.items():
        for size in LABELLED:
            print(gold_row(title, scored, record, size, options.draws), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
