"""Resident memory of this process over many short documents, which are dropped as they come.

    python scripts/bench_memory.py ./calibrated --data test.spacy                    # calib_ner + calib, greedy
    python scripts/bench_memory.py ./calibrated --data test.spacy --beam-width 16    # probabilities from a beam
    python scripts/bench_memory.py ./calibrated --data test.spacy --mode stock       # spaCy alone, greedy
    python scripts/bench_memory.py ./calibrated --data test.spacy --mode stock --beam-width 16

MODEL is a pipeline written by `spacy calib fit --component ner`. The documents hold the words of those in --data, again and
again, so that the vocab holds all of their strings after the first round; without --data, they are sentences of Python's own
documentation. --mode stock leaves out `calib` and calls the EntityRecognizer of spaCy itself, with `beam_parse` for a beam:
what grows there grows without this package. Memory is VmRSS of /proc/self/status where there is one; else the highest that it
ever was, which cannot fall. The slope is the least squares fit of the measurements after the warm-up; the allocator moves by
some MiB up and down, so short runs say little.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from bench_overhead import package_texts
from spacy import util
from spacy.language import Language
from spacy.pipeline import EntityRecognizer
from spacy.tokens import Doc, DocBin

from spacy_calib.pipe.component import Calibrator
from spacy_calib.sources.ner.source import NerSource

BATCH = 128


def resident_kib() -> float:
    """Resident memory of this process in KiB."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
        return parse_status(text)
    except OSError:
        import resource

        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return highest / 1024 if sys.platform == "darwin" else float(highest)


def parse_status(text: str) -> float:
    """VmRSS in KiB from the text of /proc/self/status. RAISES ValueError: it is not there."""
    for line in text.splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    raise ValueError("There is no VmRSS")


def slope(documents: Sequence[int], kib: Sequence[float], warm_up: int) -> float:
    """Bytes for each document: least squares over the measurements made after `warm_up` documents.

    RAISES ValueError: there are fewer than two of them.
    """
    after = [(n, size) for n, size in zip(documents, kib, strict=True) if n >= warm_up]
    if len(after) < 2:
        raise ValueError(f"{len(after)} measurements after {warm_up} documents, two are needed")
    x, y = np.array(after, dtype=np.float64).T
    return float(np.polyfit(x, 1024 * y, 1)[0])


def word_lists(data: Path | None, nlp: Language) -> list[list[str]]:
    """The words of the documents."""
    if data is not None:
        return [[token.text for token in doc] for doc in DocBin().from_disk(data).get_docs(nlp.vocab) if len(doc)]
    sentences = [part.strip() for text in package_texts() for part in text.split(". ") if part.strip()]
    return [[token.text for token in nlp.make_doc(sentence)] for sentence in sentences]


def fresh_docs(nlp: Language, words: list[list[str]], n: int) -> Iterator[Doc]:
    """n Docs without annotation, made as they are asked for."""
    return (Doc(nlp.vocab, words=one) for one in itertools.islice(itertools.cycle(words), n))


def stock_runner(nlp: Language, recognizer: str, beam_width: int) -> Callable[[list[Doc]], Any]:
    """Runs the components before the recognizer, and then spaCy's own EntityRecognizer with its weights."""
    names = nlp.pipe_names
    upstream: list[Any] = [nlp.get_pipe(name) for name in names[: names.index(recognizer)]]
    ner: Any = nlp.get_pipe(recognizer)

    def run(docs: list[Doc]) -> None:
        for pipe in upstream:
            docs = list(pipe.pipe(docs, batch_size=BATCH))
        if beam_width > 1:
            states = ner.beam_parse(docs, beam_width=beam_width, drop=0.0, beam_density=0.0)
        else:
            states = EntityRecognizer.predict(ner, docs)
        EntityRecognizer.set_annotations(ner, docs, states)

    return run


def calib_runner(nlp: Language, attr: str) -> Callable[[list[Doc]], Any]:
    """Runs the pipeline, and reads the scores of what it found."""

    def run(docs: list[Doc]) -> None:
        for doc in nlp.pipe(docs, batch_size=BATCH):
            for entity in doc.ents:
                getattr(entity._, f"{attr}_score")

    return run


def measure(run: Callable[[list[Doc]], Any], docs: Iterator[Doc], every: int) -> tuple[list[int], list[float]]:
    """Run over all Docs and print the resident memory each time that `every` more are done. RETURNS: documents, KiB."""
    done, next_at = 0, every
    numbers, sizes = [0], [resident_kib()]
    begin = time.perf_counter()
    print(f"{0:>9,} documents  {sizes[0] / 1024:8.1f} MiB", flush=True)
    for batch in util.minibatch(docs, size=BATCH):
        held = list(batch)
        run(held)
        done += len(held)
        del held, batch
        if done >= next_at:
            gc.collect()
            numbers.append(done)
            sizes.append(resident_kib())
            rate = done / (time.perf_counter() - begin)
            print(f"{done:>9,} documents  {sizes[-1] / 1024:8.1f} MiB  {rate:8.0f} documents/s", flush=True)
            next_at += every
    return numbers, sizes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="A pipeline written by `spacy calib fit --component ner`")
    parser.add_argument("--data", type=Path, help="A .spacy file whose words the documents hold")
    parser.add_argument("--documents", type=int, default=100_000, help="How many")
    parser.add_argument("--every", type=int, default=10_000, help="Measure after so many")
    parser.add_argument("--warm-up", type=int, default=None, help="Measurements before do not count for the slope (a fifth)")
    parser.add_argument("--beam-width", type=int, default=1, help="Probabilities from a beam this wide")
    parser.add_argument("--mode", choices=("calib", "stock"), default="calib", help="This package, or spaCy alone")
    parser.add_argument("--limit", type=float, default=1.0, help="Growth after the warm-up that counts as flat, %%")
    options = parser.parse_args(arguments)
    nlp = spacy.load(options.model)
    pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator) and isinstance(pipe.source, NerSource)]
    if not pipes or pipes[0].source.component not in nlp.pipe_names:
        raise SystemExit(f"{options.model} has no calibrated recognizer; make it with `spacy calib fit --component ner`.")
    words = word_lists(options.data, nlp)
    source = pipes[0].source
    assert isinstance(source, NerSource)
    source.beam_width = options.beam_width
    run = (
        stock_runner(nlp, pipes[0].source.component, options.beam_width)
        if options.mode == "stock"
        else calib_runner(nlp, pipes[0].attr)
    )
    what = "greedy" if options.beam_width == 1 else f"beam {options.beam_width}"
    tokens = sum(map(len, words)) / len(words)
    print(f"{options.mode}, {what}: {options.documents:,} documents, {len(words):,} different ones of {tokens:.1f} words")
    warm_up = options.documents // 5 if options.warm_up is None else options.warm_up
    if not 1 <= options.every <= (options.documents - warm_up) // 2:
        parser.error("--every must be at least 1 and fit twice into the documents after the warm-up")
    numbers, sizes = measure(run, fresh_docs(nlp, words, options.documents), options.every)
    growth = slope(numbers, sizes, warm_up)
    percent = 100 * growth * (numbers[-1] - warm_up) / (1024 * sizes[-1])
    flat = percent <= options.limit
    print(
        f"Slope after {warm_up:,} documents: {growth:.1f} bytes a document, {percent:.2f} % of the memory by the end "
        f"({'flat' if flat else 'GROWS'}: limit {options.limit:g} %)"
    )
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main())
