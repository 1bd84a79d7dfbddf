"""Time and peak memory of `calib fit` and `apply` of files of scores, by format of the file.

    python scripts/bench_scores.py --rows 1000000

Each command runs in a process of its own on made-up scores: 20 tags, documents of 500 units, a row for each score of .001 or more. Prints a
Markdown table; the peak is the greatest resident memory of the process. The exit code is 1 where a peak passes --limit GiB.
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

from spacy_calib.arrays.files import SUFFIXES
from spacy_calib.arrays.files.columns import Chunk
from spacy_calib.arrays.files.formats import format_of

TAGS, UNITS, LEAST = 20, 500, 0.001
_BLOCK = 10_000


class Cost(NamedTuple):
    seconds: float
    gib: float


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


def cost_of(*arguments: object) -> Cost:
    """What a command takes. RAISES SystemExit: it fails."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "spacy", "calib", *map(str, arguments), "--silent"])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments[0]} failed")
    return Cost(time.perf_counter() - begin, used.ru_maxrss / 2**20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--formats", nargs="+", default=[suffix[1:] for suffix in SUFFIXES])
    parser.add_argument("--method", default="auto")
    parser.add_argument("--limit", type=float, default=2.0, help="GiB")
    options = parser.parse_args()
    highest = 0.0
    print(f"{options.rows:,} rows, --method {options.method}\n")
    print("| format | MB | fit s | GiB | apply s | GiB |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.formats:
            path, output = Path(folder, f"scores.{name}"), Path(folder, f"calibrated.{name}")
            calibrator = Path(folder, "calibrator")
            with path.open("wb") as file:
                file.writelines(format_of(path).written(chunks(options.rows)))
            fit = cost_of("fit", path, calibrator, "--method", options.method, "--force")
            apply = cost_of("apply", calibrator, path, output)
            highest = max(highest, fit.gib, apply.gib)
            size = path.stat().st_size / 1e6
            print(
                f"| .{name} | {size:.0f} | {fit.seconds:.0f} | {fit.gib:.2f} | {apply.seconds:.0f} | {apply.gib:.2f} |",
                flush=True,
            )
    return int(highest > options.limit)


if __name__ == "__main__":
    sys.exit(main())
