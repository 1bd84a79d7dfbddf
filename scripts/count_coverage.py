"""How often do the intervals of counts hold the gold count, from raw and from calibrated scores?

    python scripts/count_coverage.py MODEL FOLDER --component tagger --output ewt.json     parts FOLDER/genre/*.spacy, each fitted on FOLDER/without/PART.spacy
    python scripts/count_coverage.py MODEL FIT TEST --component ner --parts 10             TEST cut into 10 parts of neighbouring documents, one fit on FIT
    python scripts/count_coverage.py CALIBRATED TEST --parts 10                            a pipeline that is fitted already
    python scripts/count_coverage.py MODEL ewt-dev ptb --sources gum --parts 20            texts of another source, 10 files in a part

FIT, TEST and those of --sources are .spacy files, or names of data sets that scripts/quality/readers.py reads (ewt-dev, ewt-test, gum, ptb).

A cell is a label in a part whose gold has it five times. Of each cell: the gold count, what the model found, and the number to be expected with
its 95 % interval, by raw scores of independent units, by calibrated ones, and by calibrated ones with the effects of documents that the fit
learned. With --sources also as `calib count` does where texts may be of another source: it takes what was found for the expected number where all parts
together differ from the fit data (the drift check), with the variance that FIT and these sources tell; the sources take no part in the fit of the maps,
but with --fitted they do, as more gold beside FIT. With --gold K also as K documents of the part correct it, which are drawn at random --draws times, and are counted by their gold.
Nguyen and O'Connor (2015) could not test their intervals, as nothing that they counted had gold. Nothing is chosen here: the maps and the
effects come from the fit data and the sources alone. The interval of a share of cells is by bootstrap over parts: cells of one part are alike.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
from frame import bare, between, docs_in, head, make_parser, row, save_tables
from quality import readers
from quality.readers import Documents
from spacy.language import Language
from spacy.strings import get_string_id
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_calib import fit
from spacy_calib.annotations import get_annotation
from spacy_calib.doc.attributes import doc_view
from spacy_calib.gold.reading import document_of
from spacy_calib.pairs.documents import DocumentNumbers
from spacy_calib.pipe.component import pipes_named
from spacy_calib.pipe.record.drift import LIKE
from spacy_calib.pipe.record.effects import Effects, SourceSums, with_widths
from spacy_calib.pipe.record.fit_record import read_record
from spacy_calib.plugins.counts.counting import CountEstimate, UncertainUnits, correct_count, estimate_count
from spacy_calib.plugins.counts.queries.patterns import make_query
from spacy_calib.plugins.counts.text_counts import DriftComparison, find_abilities, join_results
from spacy_calib.plugins.expect.survey import LabelledDocuments
from spacy_calib.types import Floats

DRAWS = 2000
# Gold count of a cell.
LEAST = 5
FOUND = "counting what was found"
BY_EVIDENCE = "as calib count tells it"


def every_ptb() -> Documents:
    """The files of the Penn Treebank sample, in their order."""
    return sorted((one for part in readers.ptb().values() for one in part), key=lambda one: one[0].document)


SETS: dict[str, Callable[[], Documents]] = {
    "ewt-dev": lambda: readers.ewt("dev", "tags"),
    "ewt-test": lambda: readers.ewt("test", "tags"),
    "gum": lambda: readers.ewt("train", "tags", "gum_coref") + readers.ewt("dev", "tags", "gum_coref"),
    "ptb": every_ptb,
}


class Part(NamedTuple):
    """Texts that are counted by themselves. pipeline (Path): Fitted on others. sources (Sequence): The docs of each source that tells how far
    counts are off, the fit's own first.
    """

    name: str
    pipeline: Path
    docs: list[Doc]
    sources: Sequence[list[Doc]] = ()


class Tally(NamedTuple):
    """What is known of a label in a part. gold, sizes (Floats): What the gold counts in each document, and its tokens."""

    part: str
    label: str
    units: UncertainUnits
    gold: Floats
    sizes: Floats
    effects: Effects | None
    verdict: str

    def sample(self, own: Any) -> LabelledDocuments:
        """Some documents as labelled ones. own (Ints): Their numbers."""
        return LabelledDocuments(
            *(column[own, None] for column in (self.gold, self.units.expected_counts, self.units.variances, self.sizes))
        )


def parts_of(arguments: argparse.Namespace, folder: Path) -> Iterator[Part]:
    """The parts, each with a pipeline that saw none of it."""
    data = [file_of(path, folder) for path in arguments.data]
    others = [file_of(path, folder) for path in arguments.sources]
    options = {"component": arguments.component, "label_map": arguments.map}
    given = {name: value for name, value in options.items() if value is not None}
    if len(data) == 1 and data[0].is_dir():
        for file in sorted((data[0] / "genre").glob("*.spacy"))[: arguments.most]:
            fit(arguments.model, data[0] / "without" / file.name, folder / file.stem, **given)
            yield Part(file.stem, folder / file.stem, read_docs(file))
        return
    pipeline = Path(arguments.model)
    if len(data) == 2:
        pipeline = folder / "fitted"
        fit(arguments.model, data[0], pipeline, gold=others if arguments.fitted else [], **given)
    docs = read_docs(data[-1])
    sources = [] if arguments.fitted else [read_docs(path) for path in ([data[0], *others] if others else [])]
    for number, own in enumerate(np.array_split(np.arange(len(docs)), arguments.parts)[: arguments.most]):
        yield Part(f"part {number + 1}", pipeline, [docs[i] for i in own.tolist()], sources)


def file_of(given: str, folder: Path) -> Path:
    """A file as it is, a data set as a file with a Doc for each document."""
    if given not in SETS:
        return Path(given)
    documents = SETS[given]()
    made = [doc for _, doc in readers.make_docs(documents, spacy.blank("xx").vocab, max(map(len, documents)))]
    DocBin(docs=made).to_disk(folder / f"{given}.spacy")
    return folder / f"{given}.spacy"


def read_docs(file: Path) -> list[Doc]:
    return docs_in(file, spacy.blank("xx").vocab)


def tallies_of(parts: Sequence[Part]) -> Iterator[Tally]:
    """Of all parts, whose pipelines are judged by all that they count. Other sources stand for those of the fit."""
    for pipeline in dict.fromkeys(part.pipeline for part in parts):
        own = [part for part in parts if part.pipeline == pipeline]
        nlp = spacy.load(pipeline)
        pipe = pipes_named(nlp, None)[0]
        verdict, effects, record = LIKE, {}, read_record(pipe)
        if record is not None:
            compared, numbers, documents = DriftComparison(pipe, record), DocumentNumbers(), []
            for example in run(nlp, [doc for part in own for doc in part.docs]):
                documents.append(numbers.number(document_of(example)))
                compared.see(example.predicted)
            compared.add(documents)
            verdict, effects = compared.drift(0).get("verdict", LIKE), record.effects
        if own[0].sources and verdict != LIKE:  # the maps are of one source, which texts like it are of
            held = [list(tallies_of_part(nlp, Part("", pipeline, docs), {}, LIKE)) for docs in own[0].sources]
            effects = with_widths(effects, *sums_of(held))
        for part in own:
            yield from tallies_of_part(nlp, part, effects, verdict)


def sums_of(sources: Sequence[Sequence[Tally]]) -> tuple[SourceSums, list[str]]:
    """(what was counted of each source and label, the labels). sources (Sequence): The tallies of each."""
    names = sorted({one.label for tallies in sources for one in tallies})
    table = np.zeros((4, len(sources), len(names)))
    for number, tallies in enumerate(sources):
        for one in tallies:
            opens = one.units.variances
            held = (one.gold.sum(), one.units.n_found.sum(), opens.sum(), np.square(opens).sum())
            table[:, number, names.index(one.label)] = held
    return SourceSums(*table), names


def tallies_of_part(nlp: Language, part: Part, effects: dict[str, Effects], verdict: str) -> Iterator[Tally]:
    """One for each label that the pipeline knows."""
    pipes = pipes_named(nlp, None)
    pipe = pipes[0]
    labels = {label[2:] if pipe.fit_info.layer.startswith("biluo") else label for label in pipe.lookup.labels()}
    abilities = find_abilities(nlp, pipes)
    done = list(run(nlp, part.docs))
    sizes = np.array([float(len(example.predicted)) for example in done])
    view_of = cache(doc_view)
    gold_hashes = get_annotation(pipe.fit_info.layer).gold_hashes
    in_gold = {key for doc in part.docs for key in np.unique(gold_hashes(doc)).tolist()}
    if not any(one.key == "ENT_TYPE" for one in abilities.label_scores):  # of hundreds of morphological labels a text has a few
        labels = {label for label in labels if get_string_id(label) in in_gold}
    for label in sorted(labels - {"O", ""}):
        query = make_query(label, abilities, None)
        answers = [(number, query.answer(example.predicted, view_of)) for number, example in enumerate(done)]
        gold = np.array([float(query.count_gold(example.reference)) for example in done])
        yield Tally(part.name, label, join_results(query, answers, sizes).units, gold, sizes, effects.get(label), verdict)


def cell_of(tally: Tally, golds: Sequence[int], draws: int) -> dict[str, Any]:
    """What each way of counting says; several times where labelled documents are drawn."""
    units = tally.units
    ways = {
        "raw scores, independent": [estimate_count(units._replace(calibrated=units.raw))],
        "calibrated, independent": [estimate_count(units)],
        "calibrated, documents differ": [estimate_count(units, tally.effects and replace(tally.effects, n_sources=0))],
        BY_EVIDENCE: [estimate_count(units, tally.effects, verdict=tally.verdict)],
    }
    for n in golds:
        if 2 * n <= len(tally.sizes):
            name = f"calibrated, {n} labelled documents"
            ways[name] = [with_gold(tally, n, seed) for seed in range(draws)]
    keys = ("expected", "low", "high")
    looks = {name: {key: [getattr(one, key) for one in made] for key in keys} for name, made in ways.items()}
    gold, found = int(tally.gold.sum()), int(units.n_found.sum())
    return {"part": tally.part, "label": tally.label, "gold": gold, "found": found, "verdict": tally.verdict, "looks": looks}


def with_gold(tally: Tally, n: int, seed: int) -> CountEstimate:
    """As n documents of the part correct it, the same ones for every label."""
    own = np.random.default_rng((n, seed)).choice(len(tally.sizes), n, replace=False)
    gold = np.full(len(tally.sizes), np.nan)
    gold[own] = tally.gold[own]
    return correct_count(tally.units, tally.sizes, tally.sample(own), gold_counts=gold)


def run(nlp: Language, docs: Sequence[Doc]) -> Iterator[Example]:
    """The gold, with what the pipeline says of its words."""
    last = max(nlp.pipe_names.index(pipe.name) for pipe in pipes_named(nlp, None))
    with nlp.select_pipes(enable=nlp.pipe_names[: last + 1]):
        for doc, gold in zip(nlp.pipe(bare(doc, nlp.vocab) for doc in docs), docs, strict=True):
            yield Example(doc, gold)


def summary(cells: Sequence[dict[str, Any]], seed: int = 0) -> list[dict[str, Any]]:
    """A row for each way of counting: cells, share of cells held with its interval, median width of the intervals, squared errors summed."""
    rows = [row_of(FOUND, cells, [[cell["found"]] for cell in cells], None, seed)]
    for way in dict.fromkeys(name for cell in cells for name in cell["looks"]):
        own = [cell for cell in cells if way in cell["looks"]]
        looks = [cell["looks"][way] for cell in own]
        bounds = [(np.array(look["low"]), np.array(look["high"])) for look in looks]
        rows.append(row_of(way, own, [look["expected"] for look in looks], bounds, seed))
    return rows


def row_of(way: str, cells: Sequence[dict[str, Any]], expected: Any, bounds: Any, seed: int) -> dict[str, Any]:
    """The figures of one way of counting; means over what was drawn. expected: Of each cell, (n_draws,). bounds: (low, high) of each, likewise."""
    gold = np.array([cell["gold"] for cell in cells], dtype=float)
    found = np.array([cell["found"] for cell in cells], dtype=float)
    _, part = np.unique([cell["part"] for cell in cells], return_inverse=True)
    n_parts = int(part.max()) + 1
    weights = np.random.default_rng(seed).multinomial(n_parts, np.full(n_parts, 1 / n_parts), DRAWS)[:, part]
    own = np.array([np.square(np.array(one) - true).mean() for one, true in zip(expected, gold, strict=True)])
    theirs = np.square(found - gold)
    less = np.quantile(weights @ (theirs - own), (0.025, 0.975)).tolist()
    row = {"way": way, "cells": len(cells), "parts": n_parts, "held": None, "width": None, "error": float(own.sum())}
    row |= {"found_error": float(theirs.sum()), "less": float((theirs - own).sum()), "less_interval": less}
    row["nearer"] = float((own < theirs).sum() / max(1, (own != theirs).sum()))
    if bounds is not None:
        held = np.array([((low <= true) & (true <= high)).mean() for (low, high), true in zip(bounds, gold, strict=True)])
        shares = (weights @ held) / np.maximum(weights.sum(axis=1), 1)
        row["held"], row["held_interval"] = float(held.mean()), np.quantile(shares, (0.025, 0.975)).tolist()
        row["width"] = float(np.median([(high - low).mean() / true for (low, high), true in zip(bounds, gold, strict=True)]))
    return row


def show(name: str, rows: Sequence[dict[str, Any]], verdicts: Sequence[str]) -> None:
    print(f"{name}: {rows[0]['cells']} cells of {rows[0]['parts']} parts; {', '.join(verdicts)}\n")
    head(
        "| way | cells | gold counts held | median width / gold | squared errors | less than what was found | nearer in cells |"
    )
    for one in rows:
        held = "-" if one["held"] is None else f"{100 * one['held']:.1f} % ({between(one['held_interval'], '.1f', 100)})"
        width = "-" if one["width"] is None else f"{one['width']:.2f}"
        less = f"{one['less']:,.0f} ({between(one['less_interval'], ',.0f')})"
        nearer = "-" if one["way"] == FOUND else f"{100 * one['nearer']:.0f} %"
        row(one["way"], one["cells"], held, width, f"{one['error']:,.0f}", less, nearer)


def main() -> None:
    parser = make_parser(__doc__, output=True)
    parser.add_argument("model")
    parser.add_argument("data", nargs="+", help="a folder with genre/ and without/, or fit file and test file, or a test file")
    parser.add_argument("--component")
    parser.add_argument("--map", help="as of calib fit")
    parser.add_argument("--sources", nargs="*", default=[], help="gold of others, which tells how far counts are off there")
    parser.add_argument("--fitted", action="store_true", help="the fit has these sources too")
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--most", type=int, help="parts at most")
    labelled = "so many documents of the part are labelled, where it has twice as many"
    parser.add_argument("--gold", type=int, nargs="*", default=[], help=labelled)
    parser.add_argument("--draws", type=int, default=20, help="of these documents")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tallies = list(tallies_of(list(parts_of(arguments, Path(folder)))))
    cells = [cell_of(one, arguments.gold, arguments.draws) for one in tallies if one.gold.sum() >= LEAST]
    if not cells:
        raise SystemExit("no label has gold enough in any part")
    rows = summary(cells)
    show(Path(arguments.data[-1]).stem, rows, sorted({cell["verdict"] for cell in cells}))
    save_tables(arguments.output)


if __name__ == "__main__":
    main()
