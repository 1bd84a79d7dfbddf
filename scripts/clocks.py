"""What the benches of running pipelines share: real text, clocks of the pipes within one run of nlp.pipe, runs in turn, and rows of quartiles."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from frame import bare, docs_in, ewt_file, make_parser, row
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

# Settings of `calib` pipes; a context is what `calib fit` adds by default.
AUTO: dict[str, Any] = {"selection": {}}
METHODS: dict[str, dict[str, Any]] = {
    "isotonic": {},
    "auto": AUTO,
    "context": {**AUTO, "context": {"@calib_contexts": "spacy-calib.Context.v1"}},
}
Runs = dict[str, list[dict[str, float]]]


def bench_parser(about: str | None, runs: int) -> argparse.ArgumentParser:
    """The options that the benches have."""
    parser = make_parser(about, cache=True)
    parser.add_argument("--runs", type=int, default=runs, help="runs of each pipeline, in turns")
    return parser


def texts_of(options: Any) -> tuple[list[str], str]:
    """(texts, where they are from): EWT test, or where SPACY_CALIB_DATA is not set Python's own documentation."""
    if os.environ.get("SPACY_CALIB_DATA"):
        return ewt_texts(options.cache), "EWT test by document"
    return package_texts(), "Python's documentation (SPACY_CALIB_DATA is not set)"


def ewt_texts(cache: Path) -> list[str]:
    """The text of each document of EWT test."""
    documents: list[list[str]] = []
    for line in ewt_file("test", cache).with_suffix(".conllu").read_text(encoding="utf8").splitlines():
        if line.startswith("# newdoc"):
            documents.append([])
        elif line.startswith("# text ="):
            documents[-1].append(line.partition("=")[2].strip())
    return [" ".join(sentences) for sentences in documents]


def package_texts() -> list[str]:
    """Prose of the Python documentation that comes with Python, of about EWT test's size."""
    from pydoc_data.topics import topics

    paragraphs = [" ".join(part.split()) for topic in sorted(topics) for part in topics[topic].split("\n\n")]
    return [paragraph for paragraph in paragraphs if len(paragraph.split()) >= 60][:250]


def gold_docs(nlp: Language, texts: Sequence[str], cache: Path) -> list[Doc]:
    """Docs with tags: EWT dev, or where SPACY_CALIB_DATA is not set these texts with the tagger's own."""
    if os.environ.get("SPACY_CALIB_DATA"):
        return docs_in(ewt_file("dev", cache), nlp.vocab)
    with nlp.select_pipes(enable=["tok2vec", "tagger"]):
        return list(nlp.pipe(texts))


def fit_tagger_calib(nlp: Language, calib: Any, references: Sequence[Doc]) -> None:
    """Fit a pipe behind the tagger on gold Docs, with their words and spaces."""
    with nlp.select_pipes(enable=["tok2vec"]):
        docs = list(nlp.pipe(bare(gold, nlp.vocab) for gold in references))
    calib.fit(Example(doc, gold) for doc, gold in zip(docs, references, strict=True))


class Clock:
    """Takes the place of a pipe's `pipe` and adds up the processor time spent in it.

    seconds (float): Inside the pipe, without what it waited for the stream that it reads.
    """

    def __init__(self, pipe: Any):
        self.run = pipe.pipe
        self.seconds = 0.0

    def __call__(self, stream: Iterable[Doc], **settings: Any) -> Iterator[Doc]:
        return self._clocked(self.run(self._clocked(iter(stream), -1), **settings), 1)

    def _clocked(self, docs: Iterator[Doc], sign: int) -> Iterator[Doc]:
        while True:
            begin = time.process_time()
            doc = next(docs, None)
            self.seconds += sign * (time.process_time() - begin)
            if doc is None:
                return
            yield doc


def clocked_run(nlp: Language, texts: Sequence[str]) -> dict[str, float]:
    """Seconds inside each pipe while the texts stream through all of them, as in nlp.pipe; of the processor in the whole run under "whole", by the
    wall's clock under "wall"."""
    clocks = {name: Clock(pipe) for name, pipe in nlp.pipeline}
    begin, wall = time.process_time(), time.perf_counter()
    stream: Any = (nlp.make_doc(text) for text in texts)
    for clock in clocks.values():
        stream = clock(stream, batch_size=nlp.batch_size)
    for _ in stream:
        pass
    return {
        **{name: clock.seconds for name, clock in clocks.items()},
        "whole": time.process_time() - begin,
        "wall": time.perf_counter() - wall,
    }


def in_turns(pipelines: Mapping[str, Language], texts: Sequence[str], runs: int) -> Runs:
    """Pipeline -> its runs, after a short one to warm up."""
    for nlp in pipelines.values():
        clocked_run(nlp, texts[:50])
    runs_of: Runs = {name: [] for name in pipelines}
    for _ in range(runs):
        for name, nlp in pipelines.items():
            runs_of[name].append(clocked_run(nlp, texts))
    return runs_of


def ratio(runs: Sequence[Mapping[str, float]], of: Sequence[str], over: Sequence[str] = ()) -> Any:
    """Run by run, seconds in some pipes as a share of those in others; of the rest of the run where no others are named."""
    seconds = np.array([sum(run.get(name, 0.0) for name in of) for run in runs])
    base_seconds = np.array([sum(run[name] for name in over) if over else run["whole"] for run in runs])
    return seconds / (base_seconds if over else base_seconds - seconds)


def walls(runs: Runs, one: str, other: str) -> Any:
    """Whole runs of one pipeline over those of another, by the wall's clock."""
    return np.array([a["wall"] / b["wall"] for a, b in zip(runs[one], runs[other], strict=True)])


def quartiles(name: str, values: Any, target: float | None = None) -> bool:
    """Print a row. RETURNS: whether the median is within the target."""
    low, median, high = np.percentile(values, [25, 50, 75])
    is_within, verdict = check_target(median, target)
    row(name, f"{median:.3f}", f"{low:.3f} to {high:.3f}", "" if target is None else f"{target:.1f}", verdict)
    return is_within


def check_target(value: float, target: float | None) -> tuple[bool, str]:
    """(whether a value is within the target, what the table says of that); nothing is said where there is no target."""
    is_within = target is None or bool(value <= target)
    return is_within, "" if target is None else "reached" if is_within else "MISSED"
