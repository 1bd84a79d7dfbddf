"""What calibrated arcs cost, by the clocks of the pipes within one run of nlp.pipe over real text, and whether any arc differs.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_parser.py [MODEL]

Two pipelines take turns in one process: the model as it is, and the same with `calib_parser` and `calib`. In each run the two are clocked against
all other pipes of the same run, as in `bench_entities.py`; the target is of a pipeline of embedding and parser alone. The calib pipe is fitted
on the pipeline's own arcs, one in ten moved to the neighbour: as much work as with gold, other numbers.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import spacy
from clocks import bench_parser, in_turns, quartile_head, quartiles, ratio, texts_of, walls
from frame import MODEL, bare
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
    source = {"@calib_sources": "spacy-calib.Parser.v1", "component": "parser"}
    calib: Any = nlp.add_pipe("calib", config={"source": source, "context": {"@calib_contexts": "spacy-calib.Context.v1"}})
    calib.fit([Example(doc, made_up(doc)) for doc in predicted])
    return nlp


def made_up(doc: Doc) -> Doc:
    """Gold for a parsed Doc: its own arcs, but one in ten."""
    rng = random.Random(len(doc))
    heads = [min(len(doc) - 1, token.i + 1) if rng.random() < 0.1 else token.head.i for token in doc]
    gold = bare(doc)
    relative = np.array(heads) - np.arange(len(doc))
    columns = np.stack([relative.astype(np.int64).view(np.uint64), doc.to_array(["DEP"]).reshape(-1)], axis=1)
    gold.from_array(["HEAD", "DEP"], columns)  # type: ignore[arg-type]
    return gold


def arcs_of(nlp: Language, texts: list[str]) -> np.ndarray:
    """Head and label of every token."""
    return np.concatenate([doc.to_array(["HEAD", "DEP"]).reshape(-1, 2) for doc in nlp.pipe(texts)])


def main() -> int:
    parser = bench_parser(__doc__, 15)
    parser.add_argument("model", nargs="?", default=MODEL)
    options = parser.parse_args()
    texts, _ = texts_of(options)
    pipelines = {
        "stock": slim(options.model, "parser"),
        "inline": calibrated_pipeline(options.model, texts, "calib_parser"),
        "second pass": calibrated_pipeline(options.model, texts, "parser"),
    }
    given, ours = (arcs_of(pipelines[name], texts) for name in ("stock", "inline"))
    differ = int((given != ours).any(axis=1).sum())
    print(f"{len(texts):,} texts, {len(given):,} tokens, {options.runs} runs; heads or labels that differ: {differ}\n")
    runs = in_turns(pipelines, texts, options.runs)
    stock, inline = (ratio(runs[name], ("parser", "calib")) for name in ("stock", "inline"))
    quartile_head()
    quartiles("stock: parser / rest", stock)
    quartiles("calibrated: (calib_parser + calib) / rest", inline)
    quartiles("calib / calib_parser", ratio(runs["inline"], ("calib",), ("parser",)))
    reached = quartiles("tok2vec and parser, calibrated / stock", (1 + inline) / (1 + stock), TARGET)
    quartiles("the same by wall time, run after run", walls(runs, "inline", "stock"))
    quartiles("second pass: calib / parser", ratio(runs["second pass"], ("calib",), ("parser",)))
    return 0 if reached and not differ else 1


if __name__ == "__main__":
    raise SystemExit(main())
