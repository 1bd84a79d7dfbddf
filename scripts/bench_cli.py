"""Wall time of commands, each in a process of its own, with start-up and loading.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_cli.py
    python scripts/bench_cli.py --rows 1000000

Without --rows: `python -m spacy calib fit` on EWT dev against `python -m spacy evaluate` on the same file, in turns; what counts is the median ratio
of neighbours. With --rows, time and peak memory of `calib fit` and `apply` of files of so many made-up scores, by format of the file: 20 tags,
documents of 500 units, a row for each score of .001 or more; the peak is the greatest resident memory of the process.
Exit code 1 where the ratio, or a peak, is above its limit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from clocks import said
from frame import MODEL, ewt_file, head, make_parser, row

from spacy_calib.arrays.files import SUFFIXES
from spacy_calib.arrays.files.columns import Chunk
from spacy_calib.arrays.files.formats import format_of

MOST_RATIO, MOST_GIB = 1.3, 2.0
TAGS, UNITS, LEAST = 20, 500, 0.001
_BLOCK = 10_000


class Cost(NamedTuple):
    seconds: float
    gib: float


def cost_of(*arguments: object) -> Cost:
    """What `python -m spacy ...` takes. Ends the program with what it said if it fails."""
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    with tempfile.TemporaryFile() as printed:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        taken = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            printed.seek(0)
            raise SystemExit(f"This command failed: {' '.join(command)}\n{printed.read().decode()}")
    return Cost(taken, used.ru_maxrss / 2**20)


def fit_and_evaluate(options: argparse.Namespace) -> bool:
    """Print the one row. RETURNS: whether the target is met."""
    dev = ewt_file("dev", options.cache)
    times = []
    with tempfile.TemporaryDirectory() as temporary:
        cost_of("evaluate", MODEL, dev)  # file caches
        for _ in range(options.repeats):
            fit = cost_of("calib", "fit", MODEL, dev, Path(temporary) / "calibrated", "--force")
            times.append((fit.seconds, cost_of("evaluate", MODEL, dev).seconds))
    each = np.array(times)
    ratios, (fits, evaluations) = each[:, 0] / each[:, 1], np.median(each, axis=0)
    reached = bool(np.median(ratios) <= MOST_RATIO)
    head("| repeats | calib fit s | evaluate s | ratio, median | lowest to highest | target | |", 0)
    spread = f"{ratios.min():.2f} to {ratios.max():.2f}"
    row(options.repeats, f"{fits:.2f}", f"{evaluations:.2f}", f"{np.median(ratios):.2f}", spread, MOST_RATIO, said(reached))
    return reached


def chunks(rows: int, seed: int = 0) -> Iterator[Chunk]:
    """Scores of a tagger that is too sure of itself, some units at a time, so many rows in all."""
    rng = np.random.default_rng(seed)
    labels = np.array([f"T{tag:02}" for tag in range(TAGS)])
    made = first = 0
    while made < rows:
        true = rng.dirichlet(np.full(TAGS, 0.15), _BLOCK)
        gold = (true.cumsum(axis=1) > rng.random((_BLOCK, 1))).argmax(axis=1)
        scores = true**1.5
        scores /= scores.sum(axis=1, keepdims=True)
        unit, tag = (index[: rows - made] for index in np.nonzero(scores >= LEAST))
        yield {
            "document": [f"doc{number}" for number in ((first + unit) // UNITS).tolist()],
            "unit": ((first + unit) % UNITS).tolist(),
            "word": [f"w{number}" for number in ((first + unit) % 997).tolist()],
            "tag": labels[tag].tolist(),
            "score": scores[unit, tag].tolist(),
            "gold": labels[gold[unit]].tolist(),
        }
        made, first = made + len(unit), first + _BLOCK


def score_files(options: argparse.Namespace) -> bool:
    """Print a row for each format. RETURNS: whether all peaks are below the limit."""
    print(f"{options.rows:,} rows, --method {options.method}\n")
    head("| format | MB | fit s | GiB | apply s | GiB |")
    highest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        calibrator = Path(folder, "calibrator")
        for name in options.formats:
            path, output = Path(folder, f"scores.{name}"), Path(folder, f"calibrated.{name}")
            with path.open("wb") as file:
                file.writelines(format_of(path).written(chunks(options.rows)))
            fit = cost_of("calib", "fit", path, calibrator, "--method", options.method, "--force", "--silent")
            apply = cost_of("calib", "apply", calibrator, path, output, "--silent")
            highest = max(highest, fit.gib, apply.gib)
            costs = [
                form.format(value) for cost in (fit, apply) for form, value in zip(("{:.0f}", "{:.2f}"), cost, strict=True)
            ]
            row(f".{name}", f"{path.stat().st_size / 1e6:.0f}", *costs)
    return highest <= MOST_GIB


def main() -> int:
    parser = make_parser(__doc__, cache=True)
    parser.add_argument("--repeats", type=int, default=7, help="runs of fit and evaluate, in turns")
    parser.add_argument("--rows", type=int, help="of files of scores, which are fitted and applied in place of a pipeline")
    parser.add_argument("--formats", nargs="+", default=[suffix[1:] for suffix in SUFFIXES], help="of these files")
    parser.add_argument("--method", default="auto", help="of these fits")
    options = parser.parse_args()
    return 0 if (fit_and_evaluate if options.rows is None else score_files)(options) else 1


if __name__ == "__main__":
    sys.exit(main())
