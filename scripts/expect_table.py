"""How good is `spacy calib expect`? Expected against true accuracy and F, in domain and out of it, and how often intervals hold the truth.

    python scripts/expect_table.py --cache DIR [NAME ...]

Pipelines are those of the quality benchmark (scripts/quality/models.py), trained once into `<cache>/quality/models/`, and en_core_web_sm;
each is calibrated on its fit part. SPACY_CALIB_DATA names the data; Porttinari, DANTEStocks and PetroGold come from the package
dante-corpora. The first table says for each test set what was expected and what is true, with the verdict of the drift check. The second
draws documents of the test sets at random, and says how often the 95 % interval holds the true value, and how often each verdict is given;
all draws share one fit, and with it the luck of that fit. The third splits fit and test documents of one kind anew each time and fits anew:
its share of intervals that hold the truth is the one that the interval promises.
Tables go to stdout, messages to stderr.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from quality import readers
from quality.models import trained, write_docs
from quality.readers import Documents
from quality_table import MODEL, default_cache, say
from tqdm import tqdm

from spacy_calib.calibration.token_fit import Chosen, TokenData, fit_tokens
from spacy_calib.cli.fit import fit
from spacy_calib.cli.shared.loading import open_pipeline
from spacy_calib.cli.shared.scoring import score
from spacy_calib.cli.shared.texts import stream_examples
from spacy_calib.corpus.scored import RIGHT, UNKNOWN, ScoredCorpus
from spacy_calib.doc.annotations import get_annotation
from spacy_calib.expect.drift import Labelled
from spacy_calib.expect.estimates import expected_accuracy, token_sums
from spacy_calib.expect.record import FitRecord, record_fit
from spacy_calib.expect.summary import expectations, spans_of, tokens_of
from spacy_calib.pairs.build import top_pairs
from spacy_calib.pairs.judged import JudgedPairs
from spacy_calib.types import Ints, Pairs

SIZES = (10, 30, 100)
VERDICTS = ("like the fit data", "differs from the fit data", "too few texts to tell")


@dataclass(frozen=True)
class Experiment:
    """model (Callable): cache -> what is loaded. component (str): Of it. fit (Callable): The documents to fit on. tests (dict): What it is
    judged on, by name; a name that ends in * is of another kind than the fit documents. split_anew (bool): Whether fit and first test
    documents are one kind, and tokens are judged.
    """

    model: Callable[[Path], str]
    component: str
    fit: Callable[[], Documents]
    tests: dict[str, Callable[[], Documents]]
    split_anew: bool = False


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
        split_anew=True,
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
        split_anew=True,
    ),
    # The dev sentences stand between sentences of train, those of test do not: the model is better on dev.
    "wikineural": Experiment(
        of_recipe(WIKINEURAL_NAME),
        "ner",
        lambda: readers.entities("wikineural_en", "dev"),
        {"WikiNEuRal test, fitted on dev": lambda: readers.entities("wikineural_en", "test")},
    ),
    "wikineural-test": Experiment(
        of_recipe(WIKINEURAL_NAME),
        "ner",
        lambda: wikineural_test(True),
        {"WikiNEuRal test, fitted on a fifth of it": lambda: wikineural_test(False)},
    ),
    "wnut17": Experiment(
        of_recipe("wnut17"),
        "ner",
        lambda: readers.entities("wnut17", "dev"),
        {"WNUT-17 test *": lambda: readers.entities("wnut17", "test")},
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

    corpus = score(nlp, pipe, counted(), silent=False, what=what)
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


def held_of_splits(pipe: Any, pairs: Pairs, documents: Ints, n_fit: int, draws: int, what: str) -> list[bool]:
    """Whether the interval holds the accuracy, for documents split anew and maps fitted anew.

    pairs (Pairs): Of all documents. documents (Ints): Of each pair. n_fit (int): Documents to fit on.
    """
    rng = np.random.default_rng(0)
    n_docs = int(documents.max()) + 1
    prototype = pipe.tokens.maps.prototype
    held = []
    for _ in tqdm(range(draws), desc=what, leave=False):
        chosen = np.zeros(n_docs, dtype=bool)
        chosen[rng.choice(n_docs, n_fit, replace=False)] = True
        fit_part, test_part = np.flatnonzero(chosen[documents]), np.flatnonzero(~chosen[documents])
        own = pairs.take(fit_part)
        data = TokenData(own, np.zeros(0, dtype=np.intp), documents[fit_part], len(pipe.labels), pipe.threshold)
        way = Chosen(pipe.grouping, prototype, None, None, own.scores)
        fitted = fit_tokens(data, way, pipe.tokens.maps.groups)
        calibration = fitted.calibration
        record = record_fit(JudgedPairs(data.kept_pairs, fitted.held_out, data.kept_documents), n_docs, pipe.labels)
        new = pairs.take(test_part)
        top = np.sort(top_pairs(new))
        assert calibration.maps is not None
        assert record is not None
        scores = calibration.maps.predict(new.scores[top], new.tags[top])
        found = expected_accuracy(record.tokens, token_sums(scores, documents[test_part][top], n_docs))
        held.append(found.low <= new.hits[top].mean() <= found.high)
    return held


def split_row(nlp: Any, pipe: Any, files: list[Path], title: str, draws: int) -> str:
    """The row of an experiment in the third table. files: Fit and test documents."""
    parts, n_docs = [], [0]
    for file in files:
        corpus = score(nlp, pipe, stream_examples(nlp, file), silent=False, what=f"{title}, to be split")
        judged = corpus.pairs()
        parts.append((judged.pairs, judged.documents + sum(n_docs), len(corpus)))
        n_docs.append(corpus.n_docs)
    (one, first, length), (other, second, _) = parts
    joined = Pairs(
        np.append(one.rows, other.rows + length), np.append(one.tags, other.tags), np.append(one.scores, other.scores),
        np.append(one.hits, other.hits), one.n_units + other.n_units,
    )  # fmt: skip
    held = held_of_splits(pipe, joined, np.append(first, second), n_docs[1], draws, title)
    return f"| {title} | {n_docs[1]} | {n_docs[2]} | {100 * np.mean(held):.1f} |"


def run(name: str, cache: Path, folder: Path, draws: int) -> tuple[dict[str, tuple[Scored, FitRecord]], list[str]]:
    """Fit and read an experiment; prints its rows of the first table.

    RETURNS: What was read, by test set, and the rows of the third table.
    """
    experiment = EXPERIMENTS[name]
    fit_file, output = folder / f"{name}_fit.spacy", folder / name
    write_docs(experiment.fit(), fit_file)
    say(f"Fitting {name} ...")
    fit(experiment.model(cache), fit_file, output, component=experiment.component, silent=True)
    nlp, pipe = open_pipeline(str(output), None, code=None, gpu_id=-1)
    assert pipe.learned.record is not None
    results: dict[str, tuple[Scored, FitRecord]] = {}
    for title, documents in experiment.tests.items():
        file = folder / f"{name}_test_{len(results)}.spacy"
        write_docs(documents(), file)
        scored = read_set(nlp, pipe, file, title)
        whole_rows(title, scored, pipe.learned.record)
        results[title] = (scored, pipe.learned.record)
    files = [fit_file, folder / f"{name}_test_0.spacy"]
    return results, [split_row(nlp, pipe, files, next(iter(results)), draws)] if experiment.split_anew else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"Experiments, of {', '.join(EXPERIMENTS)}; all where none is named"
    )
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for the models that are trained")
    parser.add_argument("--subsets", type=int, default=200, help="Subsets of each size")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in EXPERIMENTS]
    if unknown:
        raise SystemExit(f"There is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}.")
    print("| test set | | expected | 95 % interval | true | inside | verdict |\n| --- | --- | --- | --- | --- | --- | --- |")
    results: dict[str, tuple[Scored, FitRecord]] = {}
    split_rows: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or EXPERIMENTS:
            found, rows = run(name, options.cache.resolve(), Path(folder), options.subsets)
            results, split_rows = results | found, split_rows + rows
    print("\n| test set | documents | width | accuracy | precision | recall | F | like / differs / too few |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for title, (scored, record) in results.items():
        for size in SIZES:
            print(subset_row(title, scored, record, size, options.subsets), flush=True)
    if split_rows:
        print("\n| split anew | fit documents | test documents | accuracy |\n| --- | --- | --- | --- |")
        print("\n".join(split_rows))
    return 0


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=r"\[W095\]")
    raise SystemExit(main())
