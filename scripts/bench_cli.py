"""Wall time and peak memory of `calib fit` and `apply` of files of made-up scores, by format of the file, each in a process of its own.

    python scripts/bench_cli.py --rows 1000000

20 tags, documents of 500 units, a row for each score of .001 or more; the peak is the greatest resident memory of the process.
Exit code 1 where a peak is above its limit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from frame import head, make_parser, row

from spacy_calib.arrays.files import SUFFIXES
from spacy_calib.arrays.files.columns import Chunk
from spacy_calib.arrays.files.units import format_of

MOST_GIB = 2.0
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


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each file")
    parser.add_argument("--formats", nargs="+", default=[suffix[1:] for suffix in SUFFIXES], help="of these files")
    parser.add_argument("--method", default="auto", help="of the fits")
    options = parser.parse_args()
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
            costs = (cell for cost in (fit, apply) for cell in (f"{cost.seconds:.0f}", f"{cost.gib:.2f}"))
            row(f".{name}", f"{path.stat().st_size / 1e6:.0f}", *costs)
    return 0 if highest <= MOST_GIB else 1


if __name__ == "__main__":
    sys.exit(main())
