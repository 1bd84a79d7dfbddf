"""What calibrated entities and arcs cost, by the clocks of the pipes within one run of nlp.pipe over real text.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_pipes.py entities
    SPACY_CALIB_DATA=../shared/data python scripts/bench_pipes.py arcs [MODEL]

Pipelines take turns in one process: the stock one, the same with `calib_ner` (`calib_parser`) and `calib`, and the stock one with a `calib`
that makes a second pass; of arcs with the embedding and the parser alone. In each run the two pipes are clocked against all other pipes
of the same run ("the rest", which is the same work in all), so that

    whole pipeline, calibrated / stock = (1 + pipes / rest, calibrated) / (1 + pipes / rest, stock).

The second pass is clocked against the stock pipe of its own run. The calib pipes are fitted on the pipeline's own answers, three entities in
ten taken away at random, one arc in ten moved to the neighbour: as much work as with gold, other numbers.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import spacy
from clocks import bench_parser, in_turns, quartiles, ratio, texts_of, walls
from frame import MODEL, bare, head
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example


class Kind(NamedTuple):
    """component (str): That is calibrated. source (str): Its registered name. target, second (float | None): What the whole and the second
    pass may take. others (tuple): The pipes beside it; all of the model where none are named. columns (list): Attributes that may not differ."""

    component: str
    source: str
    target: float
    second: float | None
    others: tuple[str, ...]
    columns: list[Any]


KINDS = {
    "entities": Kind("ner", "Ner.v1", 1.0, 0.7, (), ["ENT_IOB", "ENT_TYPE"]),
    "arcs": Kind("parser", "Parser.v1", 1.3, None, ("tok2vec", "transformer"), ["HEAD", "DEP"]),
}


def stock(model: str, kind: Kind, factory: str) -> Language:
    """The pipeline, whose component is made by this factory."""
    nlp = spacy.load(model, config={"components": {kind.component: {"factory": factory}}})
    for name in set(nlp.component_names) - {*kind.others, kind.component} if kind.others else ():
        nlp.remove_pipe(name)
    return nlp


def load_calibrated(model: str, kind: Kind, factory: str, texts: list[str]) -> Language:
    """With a fitted calib pipe behind the component."""
    nlp = stock(model, kind, factory)
    config = {"source": {"@calib_sources": f"spacy-calib.{kind.source}", "component": kind.component}}
    if kind.component == "parser":
        config["context"] = {"@calib_contexts": "spacy-calib.Context.v1"}
    calib: Any = nlp.add_pipe("calib", after=kind.component, config=config)
    rng, names = random.Random(0), nlp.pipe_names[: nlp.pipe_names.index("calib")]
    with nlp.select_pipes(enable=names):
        answers = list(nlp.pipe(texts))
    with nlp.select_pipes(enable=names if factory.startswith("calib") or kind.others else names[:-1]):
        docs = list(nlp.pipe(texts))
    calib.fit([Example(doc, made_up(annotation, kind, rng)) for doc, annotation in zip(docs, answers, strict=True)])
    return nlp


def made_up(doc: Doc, kind: Kind, rng: random.Random) -> Doc:
    """Gold for a Doc: its own answers, but some."""
    if kind.component == "ner":
        doc.set_ents([ent for ent in doc.ents if rng.random() > 0.3], default="outside")
        return doc
    rng, gold = random.Random(len(doc)), bare(doc)
    heads = [min(len(doc) - 1, token.i + 1) if rng.random() < 0.1 else token.head.i for token in doc]
    relative = np.array(heads) - np.arange(len(doc))
    columns = np.stack([relative.astype(np.int64).view(np.uint64), doc.to_array(["DEP"]).reshape(-1)], axis=1)
    gold.from_array(["HEAD", "DEP"], columns)  # type: ignore[arg-type]
    return gold


def answers_of(nlp: Language, texts: list[str], columns: list[Any]) -> np.ndarray:
    return np.concatenate([doc.to_array(columns).reshape(-1, len(columns)) for doc in nlp.pipe(texts)])


def main() -> int:
    parser = bench_parser(__doc__, 15)
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("model", nargs="?", default=MODEL)
    options = parser.parse_args()
    kind, (texts, where) = KINDS[options.kind], texts_of(options)
    name, ours = kind.component, f"calib_{kind.component}"
    sample = texts[: 100 if name == "ner" else 200]
    pipelines = {
        "stock": stock(options.model, kind, name),
        "inline": load_calibrated(options.model, kind, ours, sample),
        "second pass": load_calibrated(options.model, kind, name, sample),
    }
    given, found = (answers_of(pipelines[variant], texts, kind.columns) for variant in ("stock", "inline"))
    differ = int((given != found).any(axis=1).sum())
    print(f"{where}: {len(texts):,} texts, {len(given):,} tokens, {options.runs} runs; {options.kind} that differ: {differ}\n")
    runs = in_turns(pipelines, texts, options.runs)
    before, inline = (ratio(runs[variant], (name, "calib")) for variant in ("stock", "inline"))
    head("| what | median | quartiles | target | |", 5)
    quartiles(f"stock: {name} / rest", before)
    quartiles(f"calibrated: ({ours} + calib) / rest", inline)
    quartiles(f"{ours} + calib / stock {name}, each over its own rest", inline / before)
    quartiles(f"calib / {ours}", ratio(runs["inline"], ("calib",), (name,)))
    is_fast = quartiles("the pipeline, calibrated / stock", (1 + inline) / (1 + before), kind.target)
    quartiles("the same by wall time, run after run", walls(runs, "inline", "stock"))
    second = ratio(runs["second pass"], ("calib",), (name,))
    is_fast = quartiles(f"second pass: calib / {name}", second, kind.second) and is_fast
    return 0 if is_fast and not differ else 1


if __name__ == "__main__":
    raise SystemExit(main())
