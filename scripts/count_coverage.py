"""How often do the intervals of counts hold the gold count, from raw and from calibrated scores?

    python scripts/count_coverage.py MODEL FOLDER --component tagger --output ewt.json     parts FOLDER/genre/*.spacy, each fitted on FOLDER/without/PART.spacy
    python scripts/count_coverage.py MODEL FIT TEST --component ner --parts 10             TEST cut into 10 parts of neighbouring documents, one fit on FIT
    python scripts/count_coverage.py CALIBRATED TEST --parts 10                            a pipeline that is fitted already

A cell is a label in a part whose gold has it --least times. Of each cell: the gold count, what the model found, and the number to be expected with
its 95 % interval, by raw scores of independent units, by calibrated ones, and by calibrated ones with the effects of documents that the fit
learned. Nguyen and O'Connor (2015) could not test their intervals, as nothing that they counted had gold. Nothing is chosen here: the maps and the
effects come from the fit data alone. The interval of a share of cells is by bootstrap over parts: cells of one part are alike.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_calib.cli.counting.gather import Answered, asked_of
from spacy_calib.cli.fit import fit
from spacy_calib.counts.estimate import estimate
from spacy_calib.doc.queries.reading import make_query
from spacy_calib.pipe.fitted import pipes_named

LOOKS = ("raw scores, independent", "calibrated, independent", "calibrated, documents differ")
DRAWS = 2000


class Part(NamedTuple):
    """Texts that are counted by themselves. pipeline (Path): Fitted on others."""

    name: str
    pipeline: Path
    docs: list[Doc]


def parts_of(arguments: argparse.Namespace, folder: Path) -> Iterator[Part]:
    """The parts, each with a pipeline that saw none of it."""
    data = [Path(path) for path in arguments.data]
    options = {"component": arguments.component, "method": arguments.method, "label_map": arguments.map}
    given = {name: value for name, value in options.items() if value is not None}
    if len(data) == 1 and data[0].is_dir():
        for file in sorted((data[0] / "genre").glob("*.spacy"))[: arguments.most]:
            fit(arguments.model, data[0] / "without" / file.name, folder / file.stem, **given)
            yield Part(file.stem, folder / file.stem, docs_in(file))
        return
    pipeline = Path(arguments.model)
    if len(data) == 2:
        pipeline = folder / "fitted"
        fit(arguments.model, data[0], pipeline, **given)
    docs = docs_in(data[-1])
    for number, own in enumerate(np.array_split(np.arange(len(docs)), arguments.parts)[: arguments.most]):
        yield Part(f"part {number + 1}", pipeline, [docs[i] for i in own.tolist()])


def docs_in(file: Path) -> list[Doc]:
    return list(DocBin().from_disk(file).get_docs(spacy.blank("xx").vocab))


def cells_of(part: Part, least: int, unit: str | None) -> list[dict[str, Any]]:
    """A row for each label of the part."""
    nlp = spacy.load(part.pipeline)
    pipes = pipes_named(nlp, None)
    pipe = pipes[0]
    annotation_labels = {label[2:] if pipe.fit_info.layer.startswith("biluo") else label for label in pipe.lookup.labels()}
    asked = asked_of(nlp, pipes)
    queries = [make_query(f"label={label}", asked, unit) for label in sorted(annotation_labels - {"O", ""})]
    done = list(run(nlp, part.docs))
    effects = {} if pipe.learned.record is None else pipe.learned.record.effects
    rows = []
    for query in queries:
        gold = sum(query.true(example.reference) for example in done)
        if gold < least:
            continue
        answers = [(number, query.answer(example.predicted)) for number, example in enumerate(done)]
        units = Answered.of(query, answers, np.array([float(len(example.predicted)) for example in done])).units
        name = query.text.removeprefix("label=")
        made = (
            estimate(units._replace(calibrated=units.raw)),
            estimate(units),
            estimate(units, effects.get(name)),
        )
        looks = {look: one._asdict() for look, one in zip(LOOKS, made, strict=True)}
        rows.append({"part": part.name, "label": name, "gold": gold, "found": int(units.found.sum()), "looks": looks})
    return rows


def run(nlp: Language, docs: Sequence[Doc]) -> Iterator[Example]:
    """The gold, with what the pipeline says of its words."""
    bare = (
        Doc(nlp.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc]) for doc in docs
    )
    for doc, gold in zip(nlp.pipe(bare), docs, strict=True):
        yield Example(doc, gold)


def summary(cells: Sequence[dict[str, Any]], seed: int = 0) -> list[dict[str, Any]]:
    """A row for each way of counting: share of cells held with its interval, mean width of the intervals, squared errors summed."""
    gold = np.array([cell["gold"] for cell in cells], dtype=float)
    found = np.array([cell["found"] for cell in cells], dtype=float)
    names, part = np.unique([cell["part"] for cell in cells], return_inverse=True)
    draws = np.random.default_rng(seed).multinomial(len(names), np.full(len(names), 1 / len(names)), DRAWS)
    weights = draws[:, part]
    rows = [
        {
            "way": "counting what was found",
            "held": None,
            "low": None,
            "high": None,
            "width": None,
            **errors(found, gold, found, weights),
        }
    ]
    for look in LOOKS:
        expected, low, high = (np.array([cell["looks"][look][name] for cell in cells]) for name in ("expected", "low", "high"))
        held = (low <= gold) & (gold <= high)
        shares = (weights @ held) / np.maximum(weights.sum(axis=1), 1)
        bounds = np.quantile(shares, (0.025, 0.975))
        width = float(((high - low) / gold).mean())
        row = {"way": look, "held": float(held.mean()), "low": float(bounds[0]), "high": float(bounds[1]), "width": width}
        rows.append({**row, **errors(expected, gold, found, weights)})
    return rows


def errors(expected: Any, gold: Any, found: Any, weights: Any) -> dict[str, Any]:
    """The squared errors summed, and by how much they are below those of what was found, with the interval of the difference."""
    own = np.square(expected - gold)
    less = weights @ (np.square(found - gold) - own)
    low, high = np.quantile(less, (0.025, 0.975))
    return {
        "error": float(own.sum()),
        "less": float((np.square(found - gold) - own).sum()),
        "less_low": float(low),
        "less_high": float(high),
    }


def show(name: str, cells: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> None:
    parts = len({cell["part"] for cell in cells})
    print(f"{name}: {len(cells)} cells of {parts} parts\n")
    print("| way | gold counts held | mean width / gold | squared errors | less than what was found |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        held = "-" if row["held"] is None else f"{100 * row['held']:.1f} % ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
        width = "-" if row["width"] is None else f"{row['width']:.2f}"
        print(
            f"| {row['way']} | {held} | {width} | {row['error']:,.0f} | {row['less']:,.0f} ({row['less_low']:,.0f} to {row['less_high']:,.0f}) |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", nargs="+", help="a folder with genre/ and without/, or fit file and test file, or a test file")
    parser.add_argument("--component")
    parser.add_argument("--method", help="of the fit; else what the command takes")
    parser.add_argument("--map", help="as of calib fit")
    parser.add_argument("--unit", choices=("tokens", "entities", "documents"), help="else that of the label")
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--most", type=int, help="parts at most")
    parser.add_argument("--least", type=int, default=5, help="gold count of a cell")
    parser.add_argument("--name", default="")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cells = [cell for part in parts_of(arguments, Path(folder)) for cell in cells_of(part, arguments.least, arguments.unit)]
    if not cells:
        raise SystemExit("no label has gold enough in any part")
    rows = summary(cells)
    show(arguments.name or Path(arguments.data[-1]).stem, cells, rows)
    if arguments.output is not None:
        arguments.output.write_text(json.dumps({"rows": rows, "cells": cells}, indent=1))


if __name__ == "__main__":
    main()
