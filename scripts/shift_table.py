"""Are scores true away from home? Calibrated at home, judged at home and on other kinds of text: without labels, and with a few.

    python scripts/shift_table.py --cache DIR [NAME ...] > docs/shift.md

Pipelines are those of the demo (scripts/demo.py) and of the quality benchmark (scripts/quality/models.py), made once into the cache, and
en_core_web_sm. SPACY_CALIB_DATA names the data; Porttinari, PetroGold and DANTEStocks come from the package dante-corpora. Where entities are
found, WNUT-17's types are put into those of WikiNEuRal: person PER, location LOC, corporation and group ORG, creative-work and product MISC.
The labels of en_core_web_sm are mapped so too (WORK_OF_ART and PRODUCT are MISC); those of which WNUT-17 has nothing (NORP, EVENT, LAW,
LANGUAGE, numbers and times) are outside. So its recognizer is asked the same on both.

The page goes to stdout, messages to stderr. Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from demo import prepare, train_pipeline
from quality import readers
from quality.models import trained, write_docs
from quality.readers import Documents, Sentence
from quality_table import MODEL, default_cache, say

from spacy_calib.cli.fit import fit
from spacy_calib.cli.shared.examples import run_pipes
from spacy_calib.cli.shared.loading import open_pipeline
from spacy_calib.cli.shared.texts import stream_examples
from spacy_calib.metrics import brier, ece, log_loss, smce
from spacy_calib.pairs.build import top_pairs
from spacy_calib.pairs.judged import JudgedPairs
from spacy_calib.pipe.scorer import corpus_of
from spacy_calib.types import Floats

TO_WIKINEURAL = {
    "person": "PER", "location": "LOC", "corporation": "ORG", "group": "ORG", "creative-work": "MISC", "product": "MISC",
}  # fmt: skip
OF_SPACY = {
    "PERSON": "PER", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC", "ORG": "ORG", "WORK_OF_ART": "MISC", "PRODUCT": "MISC",
    **dict.fromkeys(("NORP", "EVENT", "LAW", "LANGUAGE", "DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"), ""),
}  # fmt: skip
# Of WikiNEuRal's test sentences, the first of so many.
EVERY = 3
WHOLE = 10**9
RAW = "raw"
# What is fitted, and how: options of `spacy calib fit`.
WAYS: dict[str, dict[str, Any]] = {"TFG-5 isotonic": {"method": "isotonic"}, "auto": {}}


@dataclass(frozen=True)
class Experiment:
    """A pipeline that is calibrated at home.

    fit (Path): Gold of home. home (dict[str, Path]): Other gold of home, by name. abroad (dict[str, Path]): Gold of other kinds of text.
    options (dict): Of `spacy calib fit`.
    """

    model: str
    component: str
    fit: Path
    home: dict[str, Path] = field(default_factory=dict)
    abroad: dict[str, Path] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


# The experiments


def write(documents: Documents, file: Path, size: int = WHOLE) -> Path:
    write_docs(documents, file, size)
    return file


def porttinari(cache: Path, folder: Path) -> Iterator[Experiment]:
    """The demo's morphologizer: news at home, theses and tweets abroad. A Doc has ten sentences, or is a tweet."""
    corpus, training = cache / "demo" / "corpus", cache / "demo" / "training"
    if not (training / "model-best").exists():
        corpus.mkdir(parents=True, exist_ok=True)
        prepare(corpus)
        train_pipeline(corpus, training, None)
    abroad = {"PetroGold": corpus / "petrogold.spacy", "DANTEStocks": corpus / "dantestocks.spacy"}
    yield Experiment(
        str(training / "model-best"),
        "morphologizer",
        corpus / "fit.spacy",
        {"Porttinari test": corpus / "test.spacy"},
        abroad,
        {"train_data": corpus / "train.spacy"},
    )


def ewt(cache: Path, folder: Path) -> Iterator[Experiment]:
    """The tagger of en_core_web_sm: EWT at home, and each genre abroad where the maps are fitted on all others. A Doc is a document."""
    parts = {split: readers.ewt(split, "tags") for split in ("dev", "test")}
    files = {split: write(documents, folder / f"ewt-{split}.spacy") for split, documents in parts.items()}
    yield Experiment(MODEL, "tagger", files["dev"], {"EWT test": files["test"]})
    every = parts["dev"] + parts["test"]
    for genre in sorted({genre_of(document) for document in every}):
        own, others = (
            write(
                [document for document in every if (genre_of(document) == genre) == is_own], folder / f"{genre}-{is_own}.spacy"
            )
            for is_own in (True, False)
        )
        yield Experiment(MODEL, "tagger", others, abroad={f"EWT {genre}": own})


def genre_of(document: list[Sentence]) -> str:
    """Of a document of EWT: what its name begins with."""
    return document[0].document.partition("-")[0]


def wikineural(cache: Path, folder: Path) -> Iterator[Experiment]:
    """A small recognizer: Wikipedia at home, WNUT-17 abroad. A Doc is a sentence."""
    yield entities_of(str(trained("wikineural", cache) / "model-best"), folder, {})


def en_core_web_sm(cache: Path, folder: Path) -> Iterator[Experiment]:
    """The recognizer of en_core_web_sm on the same."""
    label_map = ",".join(f"{own}={other}" for own, other in OF_SPACY.items())
    yield entities_of(MODEL, folder, {"label_map": label_map})


def entities_of(model: str, folder: Path, options: dict[str, Any]) -> Experiment:
    name = "en_core_web_sm" if options else "small"
    home = {
        split: write(readers.entities("wikineural_en", split, every), folder / f"wikineural-{split}.spacy")
        for split, every in (("dev", 1), ("test", EVERY))
    }
    tweets = write(readers.entities("wnut17", "test", rename=TO_WIKINEURAL), folder / "wnut17.spacy")
    return Experiment(model, "ner", home["dev"], {f"WikiNEuRal, {name}": home["test"]}, {f"WNUT-17, {name}": tweets}, options)


EXPERIMENTS: dict[str, Callable[[Path, Path], Iterator[Experiment]]] = {
    "porttinari": porttinari,
    "ewt": ewt,
    "wikineural": wikineural,
    "en_core_web_sm": en_core_web_sm,
}


# Figures


@dataclass(frozen=True)
class Figures:
    """How true the scores of one test set are.

    top_loss (float): Log loss of "the likeliest label is right" (of an entity: it is right). loss, brier, smce (float): Over all pairs.
    gap (float): Mean score of the likeliest labels minus the share of them that is right. ece (float): Of the likeliest label.
    """

    top_loss: float
    loss: float
    brier: float
    smce: float
    gap: float
    ece: float


def figures_of(judged: JudgedPairs, scores: Floats) -> Figures:
    """The figures of these scores of the pairs. There is at least one pair."""
    pairs = judged.pairs
    top = top_pairs(pairs)
    hits = pairs.hits[top]
    found = (log_loss(scores[top], hits), log_loss(scores, pairs.hits), brier(scores, pairs.hits), smce(pairs, scores))
    of_top = (float(scores[top].mean() - hits.mean()), ece(pairs, scores))
    return Figures(*(float("nan") if value is None else value for value in (*found, *of_top)))


@dataclass(frozen=True)
class Row:
    """One way to score one test set. mean, spread (Figures): Over the draws of labelled documents; spread is None where there are none.
    worse (float): By how much the log loss of the likeliest label rose against the same scores without adaptation, on the same documents."""

    way: str
    mean: Figures
    spread: Figures | None = None
    worse: float = 0.0


@dataclass(frozen=True)
class Tested:
    """One test set. home (bool): It is of the same kind as the fit data. rows (dict): By way."""

    name: str
    home: bool
    n_docs: int
    n_units: int
    accuracy: float
    rows: dict[str, Row]


def over_draws(way: str, drawn: Sequence[Figures], worse: Sequence[float]) -> Row:
    table = np.array([[getattr(one, name.name) for name in fields(Figures)] for one in drawn])
    return Row(way, Figures(*table.mean(axis=0)), Figures(*table.std(axis=0, ddof=1)), float(np.mean(worse)))


# Reading


def levels_of(pipe: Any, corpus: Any) -> dict[str, JudgedPairs]:
    """The pairs of the tokens; of a recognizer those of its entities too. By what the name of the test set gets."""
    if corpus.spans is None or not len(corpus.spans):
        return {"": corpus.pairs()}
    return {", entities": corpus.span_pairs(pipe.lookup.span_labels()), ", tokens": corpus.pairs()}


def pipeline_of(given: Experiment, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Fit each way at home. RETURNS: A pipeline that has them all, one behind the other, and the pipes by way."""
    nlp: Any = None
    pipes = {}
    for number, (way, options) in enumerate(WAYS.items()):
        say(f"Fitting {way} on {given.fit.stem} ...")
        output, attr = folder / "calibrated", f"calib{number}"
        fit(given.model, given.fit, output, component=given.component, attr=attr, force=True, **given.options, **options)
        fitted, pipe = open_pipeline(str(output))
        if nlp is None:
            nlp = fitted
        else:
            nlp.add_pipe(pipe.name, source=fitted)
        pipes[way] = nlp.get_pipe(pipe.name)
    return nlp, pipes


def read(nlp: Any, pipes: dict[str, Any], file: Path) -> dict[str, dict[str, JudgedPairs]]:
    """Run the pipeline over a file once, and take what each pipe says: by level and way."""
    last = max(nlp.pipe_names.index(pipe.name) for pipe in pipes.values())
    examples = list(run_pipes(nlp, stream_examples(nlp, file), nlp.pipe_names[: last + 1], silent=True, what=""))
    found: dict[str, dict[str, JudgedPairs]] = {}
    for way, pipe in pipes.items():
        for level, judged in levels_of(pipe, corpus_of(examples, pipe.attr, pipe.lookup.labels())).items():
            found.setdefault(level, {})[way] = judged
    return found


def read_experiment(given: Experiment, folder: Path, draws: int) -> Iterator[Tested]:
    """Fit each way at home, and judge it on all test sets."""
    nlp, pipes = pipeline_of(given, folder)
    for name, file in (given.home | given.abroad).items():
        for level, ways in read(nlp, pipes, file).items():
            one = next(iter(ways.values()))
            rows = {RAW: Row(RAW, figures_of(one, one.pairs.scores))}
            rows |= {way: Row(way, figures_of(judged, judged.calibrated)) for way, judged in ways.items()}
            right = float(one.pairs.hits[top_pairs(one.pairs)].mean())
            yield Tested(name + level, name in given.home, len(np.unique(one.documents)), one.pairs.n_units, right, rows)


# The page

COLUMNS = {
    "log loss": "top_loss",
    "of all pairs": "loss",
    "Brier": "brier",
    "SMCE": "smce",
    "expected - true": "gap",
    "ECE": "ece",
}


def cell(row: Row, name: str) -> str:
    """A figure with its spread; what is expected minus what is true in points of percent."""
    values = [getattr(part, name) for part in (row.mean, row.spread) if part is not None]
    if name == "gap":
        return " ± ".join([f"{100 * values[0]:+.1f}", *(f"{100 * value:.1f}" for value in values[1:])])
    return " ± ".join(f"{value:.4f}" for value in values)


def show(tested: Tested) -> None:
    """Print the rows of a test set."""
    about = f"**{tested.name}** ({'home' if tested.home else 'abroad'}; {tested.n_docs:,} Docs, {100 * tested.accuracy:.1f} % right)"
    for row in tested.rows.values():
        print(f"| {about} | {row.way} | {' | '.join(cell(row, name) for name in COLUMNS.values())} |", flush=True)
        about = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"Experiments, of {', '.join(EXPERIMENTS)}; all where none is named"
    )
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for the models that are trained")
    parser.add_argument("--draws", type=int, default=20, help="Draws of labelled documents")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"there is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
    print(f"| texts | scores | {' | '.join(COLUMNS)} |\n| --- | --- |{' ---: |' * len(COLUMNS)}", flush=True)
    found: list[Tested] = []
    for name in options.names or EXPERIMENTS:
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.redirect_stdout(sys.stderr):  # what training and fitting say is no part of the page
                experiments = list(EXPERIMENTS[name](options.cache.resolve(), Path(folder)))
            for one in experiments:
                for tested in read_experiment(one, Path(folder), options.draws):
                    show(tested)
                    found.append(tested)
    return 0


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=r"\[W095\]")
    raise SystemExit(main())
