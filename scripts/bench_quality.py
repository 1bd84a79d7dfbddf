"""The quality benchmark: all methods of the package and its peers on all data sets, as Markdown and a table.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_quality.py

Every method is fitted on held-out pairs of a trained model and judged on other documents (quality/data.py says on which). Peers run in
environments of their own (quality/peers.py); what fails there is shown as a failure. Models, data sets, environments and peers' scores are kept in
a cache outside the repository and used again; the package's own methods are run each time. Two counts are printed: on how many sets `auto` is
never worse than a fixed method, and on how many it is better than the paper's three.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from frame import ROOT, make_parser, say
from quality import page
from quality.data import DATA_SETS, load, prepare
from quality.judge import LOSSES, against, figures, never_worse
from quality.ours import AUTO, PAPER, Outcome, Task, methods, write_pairs
from quality.peers import PEERS, PeerResult, run_peers

from spacy_calib.types import Floats

N_SAMPLES = 50_000  # Holm's procedure over some hundred rivals looks far into the tail


def run_set(name: str, cache: Path, peers: Sequence[str], limit: float, n_samples: int) -> dict[str, Any]:
    """All figures of a data set, as plain data."""
    folder = prepare(name, cache)
    data = load(folder)
    task = Task(data)
    write_pairs(task, folder)
    outcomes: dict[str, Outcome] = {}
    for method, run in methods():
        say(f"{name}: {method} ...")
        outcomes[method] = run(task)
    peer_results = run_peers(folder, cache, cache / "quality" / "peer-scores", peers, limit) if peers else []
    theirs = {peer_name(result): np.load(result.scores) for result in peer_results if result.scores}
    return {
        "name": data.name,
        "accuracy": data.accuracy,
        "tokens": len(data.test.gold),
        **judge(task, outcomes, theirs, n_samples),
        "peers": [peer_row(result, task) for result in peer_results],
    }


def judge(task: Task, outcomes: dict[str, Outcome], theirs: dict[str, Floats], n_samples: int) -> dict[str, Any]:
    """Figures of our methods, and what they say of auto."""
    scores = {method: outcome.scores for method, outcome in outcomes.items()}
    auto = scores[AUTO]
    fixed_scores = {name: result for name, result in scores.items() if not name.startswith(AUTO)}
    paper = {name: fixed_scores[name] for name in (f"TFG-5 {method}" for method in PAPER)}
    ours = {name: asdict(figures(task.test, result, task.groups)) for name, result in scores.items()}
    return {
        "ours": {name: {**ours[name], "seconds": outcomes[name].seconds} for name in scores},
        "never_worse": {
            loss: asdict(never_worse(task.test, task.documents, auto, {**fixed_scores, **theirs}, loss, n_samples))
            for loss in LOSSES
        },
        "against_paper": {loss: against(task.test, task.documents, auto, paper, loss, 2000) for loss in LOSSES},
    }


def peer_name(result: PeerResult) -> str:
    return f"{result.peer} {result.method}, {result.how}"


def peer_row(result: PeerResult, task: Task) -> dict[str, Any]:
    row = {key: value for key, value in asdict(result).items() if key != "scores"}
    if result.scores:
        row.update(asdict(figures(task.test, np.load(result.scores), task.groups)))
    return row


def better(row: dict[str, Any], loss: str) -> bool:
    """auto is better than TFG-5 with each of the paper's three methods: every interval lies below 0."""
    return all(result["high"] is not None and result["high"] < 0 for result in row["against_paper"][loss].values())


def acceptance(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """On how many data sets auto is never worse than a fixed method, and better than the paper's three."""
    return {
        "sets": len(rows),
        "never_worse": {loss: sum(row["never_worse"][loss]["held"] for row in rows) for loss in LOSSES},
        "better_than_paper": {loss: sum(better(row, loss) for row in rows) for loss in LOSSES},
    }


def main() -> int:
    parser = make_parser(__doc__, cache=True)
    parser.add_argument("--sets", nargs="+", choices=tuple(DATA_SETS), default=list(DATA_SETS), metavar="SET", help="data sets")
    parser.add_argument(
        "--peers", nargs="*", choices=tuple(PEERS), default=list(PEERS), metavar="PEER", help="peers; none for none"
    )
    parser.add_argument("--limit", type=float, default=600, help="seconds that a run of a peer may take")
    parser.add_argument("--samples", type=int, default=N_SAMPLES, help="resamples of the documents for Holm's bounds")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="folder for quality.csv")
    options = parser.parse_args()
    words = ["scripts/bench_quality.py"]
    for name in ("sets", "peers", "limit", "samples"):
        value = getattr(options, name)
        if value != parser.get_default(name):
            words += [f"--{name}", *(map(str, value) if isinstance(value, list) else [f"{value:g}"])]
    rows = []
    for name in options.sets:
        rows.append(run_set(name, options.cache, options.peers, options.limit, options.samples))
        page.write({"command": f"python {shlex.join(words)}", "acceptance": acceptance(rows), "sets": rows}, options.output)
    print(json.dumps(acceptance(rows), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
