"""Runs the peers on data sets: each peer in an environment of its own with pinned versions, each method in a process with a time limit.

PEERS is the whole list; scripts/bench_quality.py runs them. The environments lie in <cache>/quality/peers/<peer>/ and are made once for each list of packages (pip takes
them from the index it is set up with). What runs inside them, and what the kinds of methods mean, is in peer_worker.py. A result is kept
in the folder for results as long as the data, the packages and the code that runs the peers stay the same, a failure too; that an environment
could not be made is not kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from frame import say
from quality import peer_worker

WORKER = Path(peer_worker.__file__)
NUMBERS = ("numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1")
TORCH = "torch==2.13.0"  # installed first and alone, so that the CPU build of an index set up for it is taken


class Peer(NamedTuple):
    """A package to compare with.

    packages (tuple): What pip installs, one step after the other; a step is a tuple of requirements.
    methods (dict): The peer's methods of each kind (see peer_worker.py).
    python (str): The version of Python that it needs, as in 3.12; "" takes the one that runs this.
    """

    packages: tuple[tuple[str, ...], ...]
    methods: dict[str, tuple[str, ...]]
    python: str = ""


PEERS: dict[str, Peer] = {
    "scikit-learn": Peer(
        (NUMBERS,),
        {
            "binary": ("sigmoid", "isotonic", "temperature"),
            "multiclass, seen": (
                "sigmoid on logits", "sigmoid on probabilities",
                "isotonic on logits", "isotonic on probabilities",
                "temperature on logits",
            ),
            "features": ("HistGradientBoostingClassifier",),
            "entities": ("HistGradientBoostingClassifier",),
        },
    ),
    "mcgrad": Peer((("mcgrad==0.1.5", *NUMBERS),), {"features": ("MCGrad",)}),
    "netcal": Peer(
        ((TORCH,), ("netcal==1.4.0", *NUMBERS)),
        {
            "binary": (
                "HistogramBinning", "IsotonicRegression", "BBQ", "ENIR",
                "LogisticCalibration", "BetaCalibration", "TemperatureScaling",
            ),
            "multiclass": ("TemperatureScaling",),
            "multiclass, seen": (
                "HistogramBinning", "IsotonicRegression", "BBQ",
                "LogisticCalibration", "BetaCalibration",
            ),
        },
    ),
    "uncertainty-calibration": Peer(
        (("uncertainty-calibration==0.1.4", *NUMBERS),),
        {
            "binary": ("PlattBinnerCalibrator", "PlattCalibrator", "HistogramCalibrator"),
            "multiclass, seen": (
                "PlattBinnerMarginalCalibrator, 10 bins", "PlattBinnerMarginalCalibrator, 100 bins",
                "HistogramMarginalCalibrator, 10 bins", "HistogramMarginalCalibrator, 100 bins",
            ),
        },
    ),
    "probcal": Peer(
        (("probcal==0.4.0", *NUMBERS),),
        {
            "segments": ("Segmented beta", "Segmented isotonic", "Segmented spline"),
            "binary": ("BetaCalibrator", "SplineCalibrator", "CenteredIsotonicCalibrator", "CalibratorSelector"),
        },
    ),
    "probmetrics": Peer(
        ((TORCH,), ("probmetrics==1.3.0", "numba==0.68.1", *NUMBERS)),
        {
            "binary": ("affine-scaling", "quadratic-scaling", "isotonic", "CDFSplineCalibrator"),
            "multiclass": (
                "temp-scaling", "ts-mix", "svs", "svs + mixture", "sms", "sms + mixture",
                "ETSCalibrator", "VectorScalingCalibrator",
            ),
        },
    ),
    "betacal": Peer((("betacal==1.1.0", *NUMBERS),), {"binary": ("abm", "am", "ab")}),
    "venn-abers": Peer(
        (("venn-abers==1.5.4", "pandas==2.3.3", *NUMBERS),),
        {"binary": ("inductive",), "multiclass, seen": ("one_vs_rest",)},
    ),
    "dirichletcal": Peer(
        (("dirichletcal==0.5.3", "jax==0.11.0", "jaxlib==0.11.0", *NUMBERS),),
        {"multiclass, seen": ("full Dirichlet, ODIR 1e-3, L-BFGS",)},
        python="3.12",
    ),
}  # fmt: skip
HOWS = {
    "binary": ("pooled", "per group"), "segments": ("per tag", "per group"), "features": ("tag and ending", "everything"),
    "entities": ("entity",),
}  # fmt: skip
ENTITY_SETS = ("wnut17", "wikineural")
OF_TOKENS = ("logits", "gold", "documents", "starts", "forms", "endings", "title", "number")
DATA = (*OF_TOKENS, "rows", "tags", "scores", "hits", "groups")


@dataclass(frozen=True)
class PeerResult:
    """One run.

    how (str): See HOWS; else "multiclass". version (str): The peer's; "" where nothing ran.
    scores (Path | None): The calibrated scores of the test pairs, float64 in [0, 1], shape (n_pairs,); None after a failure.
    seconds (float): Fit and predict; after a failure what passed until it.
    failure (str): What went wrong, in a line; "" where nothing did.
    notes (dict): What the worker counted: tokens left out, classes unseen, pairs that kept their raw score or took the pooled map.
    """

    peer: str
    method: str
    how: str
    version: str
    scores: Path | None
    seconds: float
    failure: str
    notes: dict[str, int]


def error_line(text: str) -> str:
    """The last line of a program's output that says it is an error, else the last with anything on it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE) and "subprocess" not in line]
    return (errors or lines or [""])[-1][:300]


def runs_of(peer: Peer, of_entities: bool) -> Iterator[tuple[str, str, str]]:
    """(kind, method, how) of each run of a peer on a set, of entities or of tags."""
    for kind, methods in peer.methods.items():
        if kind == "entities" and not of_entities:
            continue
        for method in methods:
            for how in HOWS.get(kind, ("multiclass",)):
                yield kind, method, how


# Environments


def base_python(version: str) -> str:
    """The program of this version of Python on the path; "" where there is none that runs."""
    if not version or version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{version}")
    works = found and not subprocess.run([found, "-c", ""], capture_output=True).returncode
    return found if found and works else ""


def environment(name: str, cache: Path) -> tuple[Path | None, str]:
    """The Python of a peer's environment, which is made where it is missing or holds other packages.

    RETURNS: The program, or None and what went wrong.
    """
    peer, folder = PEERS[name], cache / "quality" / "peers" / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    base = base_python(peer.python)
    if not base:
        return None, f"No environment: there is no Python {peer.python}."
    of = peer.python or f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = "\n".join([f"python {of}", *(" ".join(step) for step in peer.packages)]) + "\n"
    made = folder / "packages.txt"
    if made.exists() and made.read_text(encoding="utf8") == wanted:
        return python, ""
    say(f"Making an environment for {name} ...")
    shutil.rmtree(folder, ignore_errors=True)
    commands = [[base, "-m", "venv", str(folder)]]
    commands += [[str(python), "-m", "pip", "install", "--quiet", *step] for step in peer.packages]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return None, f"No environment: {error_line(done.stdout + done.stderr)}"
    made.write_text(wanted, encoding="utf8")
    return python, ""


# Runs


def digest(folder: Path) -> str:
    """Of the arrays of a data set that the worker may read."""
    sha = hashlib.sha256()
    for name in (f"{split}_{part}" for split in ("fit", "test") for part in DATA):
        file = folder / f"{name}.npy"
        sha.update(name.encode())
        if file.exists():
            sha.update(file.read_bytes())
    return sha.hexdigest()


def key_of(peer: str, kind: str, data: str) -> str:
    """What a kept result must agree with: the data, the packages, and the worker's code."""
    return hashlib.sha256(repr((data, PEERS[peer].packages, kind, WORKER.read_text(encoding="utf8"))).encode()).hexdigest()


def file_name(method: str, how: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{method} {how}").strip("-")


def kept(file: Path, key: str, limit: float) -> PeerResult | None:
    """A result of an earlier run with the same key; not one that ran out of a shorter time."""
    if not file.exists():
        return None
    told = json.loads(file.read_text(encoding="utf8"))
    if told.pop("key") != key or told.pop("out_of_time", limit) < limit:
        return None
    if told["scores"] is not None:
        told["scores"] = file.parent / told["scores"]
        if not told["scores"].exists():
            return None
    return PeerResult(**told)


def keep(file: Path, key: str, result: PeerResult, out_of_time: float | None) -> None:
    told = asdict(result) | {"key": key, "scores": result.scores and result.scores.name}
    if out_of_time is not None:
        told["out_of_time"] = out_of_time
    partial = file.with_suffix(".part")
    partial.write_text(json.dumps(told, indent=1) + "\n", encoding="utf8")
    os.replace(partial, file)


def run_once(python: Path, folder: Path, file: Path, run: tuple[str, str, str, str], limit: float) -> tuple[PeerResult, bool]:
    """Run one method of a peer in its environment.

    file (Path): Where the result is kept; scores and log lie beside it. run (tuple): peer, kind, method, how.
    RETURNS: The result, and whether it ran out of time.
    """
    peer, kind, method, how = run
    scores, log = file.with_suffix(".npy"), file.with_suffix(".log")
    scores.unlink(missing_ok=True)
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as empty, log.open("w", encoding="utf8") as output:
        report = Path(empty) / "report.json"
        command = [python, "-I", WORKER, folder.resolve(), "--peer", peer, "--method", method, "--kind", kind, "--how", how]
        command += ["--scores", scores.resolve(), "--report", report]
        try:
            code = subprocess.run(
                [str(part) for part in command], cwd=empty, env=os.environ | one_thread, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, timeout=limit,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return PeerResult(peer, method, how, "", None, limit, f"Not done after {limit:g} s.", {}), True
        passed = time.perf_counter() - start
        told = json.loads(report.read_text(encoding="utf8")) if report.exists() else {}
    if told and not told["failure"]:
        notes = {name: value for name, value in told.items() if isinstance(value, int)}
        seconds = told["fit_seconds"] + told["predict_seconds"]
        return PeerResult(peer, method, how, told["version"], scores, seconds, "", notes), False
    why = told.get("failure") or error_line(log.read_text(encoding="utf8")) or "Nothing was said"
    if code < 0:
        why = f"Ended by signal {-code}: {why}"
    return PeerResult(peer, method, how, told.get("version", ""), None, passed, why, {}), False


def run_peers(folder: Path, cache: Path, out: Path, only: Sequence[str] | None = None, limit: float = 600) -> list[PeerResult]:
    """The results of the peers on a data set.

    folder (Path): Of the data set, with the arrays that peer_worker.Data describes.
    cache (Path): Holds the environments, under quality/peers.
    out (Path): Holds results, in a folder for each data set (by the name of its folder) and peer.
    only (Sequence[str] | None): Names of the peers to run; all of them by itself.
    limit (float): Seconds that a run may take, with imports and reading.
    """
    unknown = set(only or ()) - set(PEERS)
    if unknown:
        raise ValueError(f"There is no peer {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}.")
    data = digest(folder)
    results = []
    for name in only or PEERS:
        place = out / folder.resolve().name / name
        place.mkdir(parents=True, exist_ok=True)
        python: Path | None = None
        failure = ""
        for kind, method, how in runs_of(PEERS[name], folder.resolve().name in ENTITY_SETS):
            file, key = place / f"{file_name(method, how)}.json", key_of(name, kind, data)
            result = kept(file, key, limit)
            if result is None and python is None and not failure:
                python, failure = environment(name, cache)
            if result is None and python is None:
                result = PeerResult(name, method, how, "", None, 0.0, failure, {})
            elif result is None:
                assert python is not None
                say(f"{folder.name}: {name}, {method}, {how} ...")
                result, late = run_once(python, folder, file, (name, kind, method, how), limit)
                keep(file, key, result, limit if late else None)
            assert result is not None
            results.append(result)
    return results
