"""Wall time of `python -m spacy calib fit` on EWT dev against `python -m spacy evaluate` on the same file.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_cli.py

Both run in turns, in processes of their own, with start-up and loading; what counts is the median ratio of neighbours.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from frame import MODEL, default_cache, ewt_file

TARGET = 1.3


def seconds(*arguments: object) -> float:
    """Wall time of `python -m spacy ...`. Ends the program if it fails."""
    command = [sys.executable, "-m", "spacy", *map(str, arguments)]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    taken = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(f"This command failed: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7, help="Runs of each command, in turns")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for converted data, outside the repository")
    options = parser.parse_args()
    dev = ewt_file("dev", options.cache)
    times = []
    with tempfile.TemporaryDirectory() as temporary:
        output = Path(temporary) / "calibrated"
        seconds("evaluate", MODEL, dev)  # file caches
        for _ in range(options.repeats):
            fit = seconds("calib", "fit", MODEL, dev, output, "--force")
            times.append((fit, seconds("evaluate", MODEL, dev)))
    each = np.array(times)
    ratios = each[:, 0] / each[:, 1]
    reached = bool(np.median(ratios) <= TARGET)
    print("| repeats | calib fit s | evaluate s | ratio, median | lowest to highest | target | |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print(
        f"| {options.repeats} | {np.median(each[:, 0]):.2f} | {np.median(each[:, 1]):.2f} | {np.median(ratios):.2f} "
        f"| {ratios.min():.2f} to {ratios.max():.2f} | {TARGET} | {'reached' if reached else 'MISSED'} |"
    )
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
