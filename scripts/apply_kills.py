"""Does `calib apply` lose or repeat a row where it is killed with -9 at any moment, and run again?

    python scripts/apply_kills.py MODEL TEXTS --kills 50 [--n-process 2] [--seed 0]

One run is left alone: its shards are the truth, and its duration T says when the others are killed: each at a moment drawn evenly from 0 to T, loading
included, together with its workers. The same command is given again until the folder is finished; then a new folder is begun, until there
were so many kills. After each kill every shard that is there has to be whole, byte for byte that of the undisturbed run; in the end the rows of all
shards have to be those of the undisturbed run, each once. Exit code 1 where anything differs.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from frame import make_parser


@dataclass
class Seen:
    """What happened. phases (Counter): In which state a kill found the folder. faults (list[str]): What must not be."""

    kills: int = 0
    folders: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def start(arguments: argparse.Namespace, folder: Path) -> subprocess.Popen[bytes]:
    """The command in a process group of its own."""
    command = [sys.executable, "-m", "spacy", "calib", "apply", arguments.model, arguments.texts, str(folder), "--silent"]
    command += ["--shard-size", "50", "--format", "jsonl", "--n-process", str(arguments.n_process)]
    return subprocess.Popen(command, start_new_session=True)


def shards_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*")) if folder.is_dir() else []


def rows_in(folder: Path) -> Counter[str]:
    """How often each row is there."""
    return Counter(row for file in shards_in(folder) for row in file.read_text(encoding="utf8").splitlines())


def look_at(folder: Path, truth: dict[str, bytes], seen: Seen) -> None:
    """What a kill left."""
    names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    shards = shards_in(folder)
    if any(name.endswith(".partial") for name in names):
        phase = "in the middle of a shard"
    elif not names:
        phase = "before anything was written"
    else:
        phase = "between two shards" if shards else "before the first shard"
    seen.phases[phase] += 1
    seen.faults += [f"{file.name} is not whole" for file in shards if file.read_bytes() != truth.get(file.name)]


def one_folder(
    arguments: argparse.Namespace, folder: Path, truth: dict[str, bytes], longest: float, seen: Seen, rng: random.Random
) -> None:
    """Kill and run again until the folder is finished. longest (float): Seconds of an undisturbed run."""
    seen.folders += 1
    while True:
        process = start(arguments, folder)
        try:
            code = process.wait(rng.uniform(0, longest) if seen.kills < arguments.kills else None)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            seen.kills += 1
            look_at(folder, truth, seen)
            continue
        if code:
            seen.faults.append(f"a run ended with code {code}")
        return


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("model")
    parser.add_argument("texts")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--n-process", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng, seen = random.Random(arguments.seed), Seen()
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        began = time.perf_counter()
        if start(arguments, whole).wait():
            return 1
        longest = time.perf_counter() - began
        truth = {file.name: file.read_bytes() for file in shards_in(whole)}
        wanted = rows_in(whole)
        while seen.kills < arguments.kills and not seen.faults:
            folder = Path(place) / str(seen.folders)
            one_folder(arguments, folder, truth, longest, seen, rng)
            found = rows_in(folder)
            lost, more = (wanted - found).total(), (found - wanted).total()
            seen.faults += [f"{lost:,} rows are lost, {more:,} are more than there should be"] * bool(lost or more)
            left = [file.name for file in folder.iterdir() if file.name.endswith(".partial") or file.name == "_lock"]
            seen.faults += [f"{name} was left behind" for name in left]
    phases = ", ".join(f"{n} {phase}" for phase, n in seen.phases.most_common())
    print(f"{seen.kills} kills of runs of {longest:.1f} s, in {seen.folders} folders of {len(truth)} shards ({phases})")
    fine = f"the {wanted.total():,} rows are those of the undisturbed run, none is lost and none there twice"
    print("; ".join(seen.faults) or fine)
    return 1 if seen.faults else 0


if __name__ == "__main__":
    sys.exit(main())
