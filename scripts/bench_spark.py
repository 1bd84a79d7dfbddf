"""Scores on Spark: two workers of one core against one, and one against plain `nlp.pipe` of one process.

    python scripts/bench_spark.py MODEL DATA.spacy --documents 20000

Each round runs over the same texts plainly, with one worker and with two (one partition, or two, of a local cluster of two workers of one core);
the first round is to warm up and does not count. Not counted are: the start of the session, loading the pipeline (once each process; Spark ends one
that had nothing to do for a minute, so that a few texts come before each job, on both workers), and bringing the texts to the workers (they are cached
there). Counted is all else: texts to Python, pipeline, rows of scores, rows back to the JVM. The ratios
are those of one round; medians over the rounds, with the least and the largest. Wanted: two workers at least 1.6 times as fast as one, one at most
15 % slower than `nlp.pipe`, which makes no rows.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
from clocks import clocked
from frame import docs_in, head, make_parser, row

from spacy_calib import CalibError

WANTED_SPEEDUP, WANTED_OVERHEAD = 1.6, 0.15


def read_texts(path: Path, n: int, vocab: Any) -> list[str]:
    """n texts of a corpus, from the beginning again where it has fewer; a text that comes again has its round behind it, so that none is the same."""
    texts = [doc.text for doc in docs_in(path, vocab)]
    return [f"{text} {number // len(texts)}" for number, text in zip(range(n), itertools.cycle(texts), strict=False)]


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("model", help="Pipeline with a fitted calib pipe")
    parser.add_argument("data", type=Path, help="Texts: a .spacy file")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5, help="That count; one more warms up")
    parser.add_argument("--unit", default="token")
    parser.add_argument("--batch-size", type=int, default=1024)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        from spacy_calib.plugins.spark import local_session
        from spacy_calib.plugins.spark.session import check_java

        check_java()
    except CalibError as error:
        print(f"Skipped, no figures of one worker and of two: {error}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        model = shutil.copytree(options.model, f"{folder}/model") if Path(options.model).is_dir() else options.model
        session = local_session(
            "local-cluster[2,1,2048]", spark_log_level="ERROR", spark_locality_wait=0, spark_ui_showConsoleProgress="false"
        )
        try:
            return compare(session, str(model), options)
        finally:
            session.stop()


def compare(session: Any, model: str, options: argparse.Namespace) -> int:
    from spacy_calib.plugins.spark import score

    nlp = spacy.load(model)
    texts = read_texts(options.data, options.documents, nlp.vocab)

    def plainly() -> None:
        for _ in nlp.pipe(texts):
            pass

    def with_workers(some: list[str], n: int) -> Callable[[], None]:
        frame = session.createDataFrame(list(enumerate(some)), "number long, text string").repartition(n).cache()
        frame.count()
        scored = score(frame, model, id="number", unit=options.unit, batch_size=options.batch_size)
        return lambda: scored.write.format("noop").mode("overwrite").save()

    runs = {"nlp.pipe": plainly, "one worker": with_workers(texts, 1), "two workers": with_workers(texts, 2)}
    wake = with_workers(texts[:16], 2)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(options.rounds + 1):
        order = list(runs)
        for name in order if number % 2 else order[::-1]:
            wake()
            took = clocked(runs[name])
            if number:
                times[name].append(took)
    speedups = [one / two for one, two in zip(times["one worker"], times["two workers"], strict=True)]
    overheads = [one / plain - 1 for one, plain in zip(times["one worker"], times["nlp.pipe"], strict=True)]
    print(f"{len(texts):,} documents, unit {options.unit}, {options.rounds} rounds after one to warm up")
    head("| | documents per second, median | least | largest |")
    for name, taken in times.items():
        speeds = [len(texts) / took for took in taken]
        row(name, *(f"{one:,.0f}" for one in (statistics.median(speeds), min(speeds), max(speeds))))
    speedup, overhead = statistics.median(speedups), statistics.median(overheads)
    print(f"Two workers against one: {speedup:.2f} times ({min(speedups):.2f} to {max(speedups):.2f}), wanted {WANTED_SPEEDUP}")
    print(
        f"One worker against nlp.pipe: {overhead:+.1%} time ({min(overheads):+.1%} to {max(overheads):+.1%}), wanted {WANTED_OVERHEAD:.0%}"
    )
    return 0 if speedup >= WANTED_SPEEDUP and overhead <= WANTED_OVERHEAD else 1


if __name__ == "__main__":
    sys.exit(main())
