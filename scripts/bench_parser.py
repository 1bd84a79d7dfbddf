"""What calibrated arcs cost, by the clocks of the pipes within one run of nlp.pipe over real text, and whether any arc differs.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_parser.py [MODEL]

Two pipelines take turns in one process: the model as it is, and the same with `calib_parser` and `calib`. In each run the two are clocked against
all other pipes of the same run, as in `bench_entities.py`; the target is of a pipeline of embedding and parser alone. The calib pipe is fitted
on the pipeline's own arcs, one in ten moved to the neighbour: as much work as with gold, other numbers.
"""

from __future__ import annotations

import argparse
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from bench_entities import clocked_run, quartiles
from bench_overhead import ewt_texts, package_texts
from frame import MODEL, default_cache
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

TARGET = 1.3


def slim(model: str, factory: str) -> Language:
    """The model's embedding and parser alone; the parser is made by this factory."""
    nlp = spacy.load(model, config={"components": {"parser": {"factory": factory}}})
    for name in set(nlp.component_names) - {"tok2vec", "transformer", "parser"}:
        nlp.remove_pipe(name)
    return nlp


def calibrated_pipeline(model: str, texts: list[str], factory: str) -> Language:
    """With a fitted calib pipe behind its parser."""
    nlp = slim(model, factory)
    predicted = list(nlp.pipe(texts[:200]))
    calib: Any = nlp.add_pipe(
        "calib",
        config={
            "source": {"@calib_sources": "spacy-calib.Parser.v1", "component": "parser"},
            "context": {"@calib_contexts": "spacy-calib.Context.v1"},
        },
    )
    calib.fit([Example(doc, made_up(doc)) for doc in predicted])
    return nlp


def made_up(doc: Doc) -> Doc:
    """Gold for a parsed Doc: its own arcs, but one in ten."""
    rng = random.Random(len(doc))
    heads = [min(len(doc) - 1, token.i + 1) if rng.random() < 0.1 else token.head.i for token in doc]
    spaces = [bool(token.whitespace_) for token in doc]
    gold = Doc(doc.vocab, words=[token.text for token in doc], spaces=spaces)
    relative = np.array(heads) - np.arange(len(doc))
    columns = np.stack([relative.astype(np.int64).view(np.uint64), doc.to_array(["DEP"]).reshape(-1)], axis=1)
    gold.from_array(["HEAD", "DEP"], columns)  # type: ignore[arg-type]
    return gold


def arcs_of(nlp: Language, texts: list[str]) -> np.ndarray:
    """Head and label of every token."""
    return np.concatenate([doc.to_array(["HEAD", "DEP"]).reshape(-1, 2) for doc in nlp.pipe(texts)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default=MODEL)
    parser.add_argument("--runs", type=int, default=15, help="Runs of each pipeline, in turns")
    parser.add_argument("--unit", choices=("document", "chunk", "sentence"), default="document", help="What a Doc of EWT holds")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for converted data, outside the repository")
    options = parser.parse_args()
    has_data = bool(os.environ.get("SPACY_CALIB_DATA"))
    texts = ewt_texts(options.cache, options.unit) if has_data else package_texts()
    pipelines = {
        "stock": slim(options.model, "parser"),
        "inline": calibrated_pipeline(options.model, texts, "calib_parser"),
        "second pass": calibrated_pipeline(options.model, texts, "parser"),
    }
    stock, ours = (arcs_of(pipelines[name], texts) for name in ("stock", "inline"))
    differ = int((stock != ours).any(axis=1).sum())
    print(f"{len(texts):,} texts, {len(stock):,} tokens, {options.runs} runs; heads or labels that differ: {differ}\n")
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in pipelines}
    for _ in range(options.runs):
        for name, nlp in pipelines.items():
            runs[name].append(clocked_run(nlp, texts))

    def arcs(name: str) -> Any:
        """Seconds in parser and calib pipe as a share of the rest of the same run."""
        both = np.array([run["parser"] + run.get("calib", 0.0) for run in runs[name]])
        return both / (np.array([run["whole"] for run in runs[name]]) - both)

    print("| what | median | quartiles | target | |")
    print("| --- | --- | --- | --- | --- |")
    quartiles("stock: parser / rest", arcs("stock"), None)
    quartiles("calibrated: (calib_parser + calib) / rest", arcs("inline"), None)
    quartiles("calib / calib_parser", np.array([run["calib"] / run["parser"] for run in runs["inline"]]), None)
    reached = quartiles("tok2vec and parser, calibrated / stock", (1 + arcs("inline")) / (1 + arcs("stock")), TARGET)
    walls = np.array([run["whole"] for run in runs["inline"]]) / np.array([run["whole"] for run in runs["stock"]])
    quartiles("the same by wall time, run after run", walls, None)
    quartiles("second pass: calib / parser", np.array([run["calib"] / run["parser"] for run in runs["second pass"]]), None)
    return 0 if reached and not differ else 1


if __name__ == "__main__":
    raise SystemExit(main())
