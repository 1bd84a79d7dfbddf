"""Runs the peers on data sets: each peer in an environment of its own with pinned versions, each method in a process with a time limit.

The list, what runs inside the environments, and what the kinds of methods mean, is in peer_worker.py. The environments lie in
<cache>/quality/peers/<peer>/ and are made once for each list of packages (pip takes them from the index it is set up with). A result is kept
in the folder for results as long as the data, the packages, the time limit and the code that runs the peers stay the same, a failure too;
that an environment could not be made is not kept.
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

from frame import say
from quality import peer_worker
from quality.peer_worker import PEERS, Peer

WORKER = Path(peer_worker.__file__)
HOWS = {"binary": ("pooled", "per group"), "features": ("tag and ending", "everything")}
OF_TOKENS = ("logits", "gold", "documents", "starts", "forms", "endings", "shapes")
DATA = (*OF_TOKENS, "rows", "tags", "scores", "hits", "groups")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class PeerResult:
    """One run.

    how (str): See HOWS; else "multiclass". version (str): The peer's; "" where nothing ran.
    scores (str): File of the calibrated scores of the test pairs, float64 in [0, 1], shape (n_pairs,); "" after a failure.
    seconds (float): Fit and predict; after a failure what passed until it.
    failure (str): What went wrong, in a line; "" where nothing did.
    """

    peer: str
    method: str
    how: str
    version: str
    scores: str
    seconds: float
    failure: str


def error_line(text: str) -> str:
    """The last line of a program's output that says it is an error, else the last with anything on it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE) and "subprocess" not in line]
    return (errors or lines or [""])[-1][:300]


def runs_of(peer: Peer) -> Iterator[tuple[str, str, str]]:
    """(kind, method, how) of each run of a peer on a set."""
    for kind, (_, methods) in peer.methods.items():
        for method in methods:
            for how in HOWS.get(kind, ("multiclass",)):
                yield kind, method, how


def environment(name: str, cache: Path) -> tuple[Path | None, str]:
    """The Python of a peer's environment, which is made where it is missing or holds other packages.

    RETURNS: The program, or None and what went wrong.
    """
    peer, folder = PEERS[name], cache / "quality" / "peers" / name
    python, marker = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"), folder / "packages.txt"
    requirements = "\n".join(
        [f"python {sys.version_info.major}.{sys.version_info.minor}", *(" ".join(step) for step in peer.packages)]
    )
    if marker.exists() and marker.read_text(encoding="utf8").strip() == requirements:
        return python, ""
    say(f"Making an environment for {name} ...")
    shutil.rmtree(folder, ignore_errors=True)
    commands = [[sys.executable, "-m", "venv", str(folder)]]
    commands += [[str(python), "-m", "pip", "install", "--quiet", *step] for step in peer.packages]
    for command in commands:
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            return None, f"No environment: {error_line(process.stdout + process.stderr)}"
    marker.write_text(requirements + "\n", encoding="utf8")
    return python, ""


def digest(folder: Path) -> str:
    """Of the arrays of a data set that the worker may read."""
    sha = hashlib.sha256()
    for file in (folder / f"{split}_{part}.npy" for split in ("fit", "test") for part in DATA):
        sha.update(file.name.encode())
        if file.exists():
            sha.update(file.read_bytes())
    return sha.hexdigest()


def run_once(python: Path, folder: Path, scores: Path, run: tuple[str, str, str, str], limit: float) -> PeerResult:
    """Run one method of a peer in its environment. scores (Path): Where they are written. run (tuple): peer, kind, method, how."""
    peer, kind, method, how = run
    scores.unlink(missing_ok=True)
    start, log = time.perf_counter(), scores.with_suffix(".log")

    def failure(why: str, version: str = "") -> PeerResult:
        return PeerResult(peer, method, how, version, "", time.perf_counter() - start, why)

    with tempfile.TemporaryDirectory() as empty, log.open("w", encoding="utf8") as output:
        report = Path(empty) / "report.json"
        command = [python, "-I", WORKER, folder.resolve(), "--peer", peer, "--method", method, "--kind", kind, "--how", how]
        command += ["--scores", scores.resolve(), "--report", report]
        try:
            code = subprocess.run(
                [str(part) for part in command], cwd=empty, env=os.environ | dict.fromkeys(_THREADS, "1"),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, timeout=limit,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return failure(f"Not done after {limit:g} s.")
        answer = json.loads(report.read_text(encoding="utf8")) if report.exists() else {}
    if answer and not answer["failure"]:
        return PeerResult(peer, method, how, answer["version"], str(scores), answer["seconds"], "")
    why = answer.get("failure") or error_line(log.read_text(encoding="utf8")) or "Nothing was said"
    return failure(f"Ended by signal {-code}: {why}" if code < 0 else why, answer.get("version", ""))


def run_peers(folder: Path, cache: Path, out: Path, names: Sequence[str], limit: float = 600) -> list[PeerResult]:
    """The results of the peers on a data set.

    folder (Path): Of the data set, with the arrays that peer_worker.Data describes. cache (Path): Holds the environments.
    out (Path): Holds results, in a folder for each data set (by the name of its folder) and peer.
    names (Sequence[str]): Names of the peers to run. limit (float): Seconds that a run may take, with imports and reading.
    """
    data, results = digest(folder), []
    for name in names:
        place = out / folder.resolve().name / name
        place.mkdir(parents=True, exist_ok=True)
        python: Path | None = None
        failure = ""
        code = (data, PEERS[name].packages, limit, WORKER.read_text(encoding="utf8"))
        for kind, method, how in runs_of(PEERS[name]):
            file = place / (re.sub(r"[^A-Za-z0-9]+", "-", f"{method} {how}").strip("-") + ".json")
            key = hashlib.sha256(repr((kind, *code)).encode()).hexdigest()
            kept = json.loads(file.read_text(encoding="utf8")) if file.exists() else {}
            if kept.pop("key", "") == key:
                results.append(PeerResult(**kept))
                continue
            if python is None and not failure:
                python, failure = environment(name, cache)
            if python is None:
                results.append(PeerResult(name, method, how, "", "", 0.0, failure))
                continue
            say(f"{folder.name}: {name}, {method}, {how} ...")
            results.append(run_once(python, folder, file.with_suffix(".npy"), (name, kind, method, how), limit))
            file.write_text(json.dumps(asdict(results[-1]) | {"key": key}, indent=1) + "\n", encoding="utf8")
    return results
