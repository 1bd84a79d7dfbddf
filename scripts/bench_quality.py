"""The quality benchmark: all methods of the package and its peers on all data sets, as Markdown and JSON.

    SPACY_CALIB_DATA=../shared/data python scripts/bench_quality.py

Every method is fitted on held-out pairs of a trained model and judged on other documents (quality/data.py says on which). Peers run in
environments of their own (quality/peers.py); what fails there is shown as a failure. Models, data sets, environments and peers' scores are kept in
a cache outside the repository and used again; the package's own methods are run each time. The acceptance of the issue stands first: is
`auto` ever worse than a fixed method, and is it better than the paper's three.
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from frame import ROOT, head, make_parser, row, say
from quality.data import DATA_SETS, DataSet, load, prepare
from quality.judge import COVERAGE, LOSSES, MARGIN, against, figures, floors, never_worse
from quality.ours import AUTO, PAPER, Outcome, Task, methods, promises, write_pairs
from quality.peers import PEERS, PeerResult, run_peers

from spacy_calib.types import Floats

N_SAMPLES = 50_000  # Holm's procedure over some hundred rivals looks far into the tail


def run_set(name: str, cache: Path, peers: Sequence[str], limit: float, n_samples: int) -> dict[str, Any]:
    """All figures of a data set, as plain data."""
    folder = prepare(name, cache)
    held = load(folder)
    task = Task(held)
    write_pairs(task, folder)
    outcomes: dict[str, Outcome] = {}
    for method, run in methods(name):
        say(f"{name}: {method} ...")
        outcomes[method] = run(task)
    found = run_peers(folder, cache, cache / "quality" / "peer-scores", peers, limit) if peers else []
    theirs = {peer_name(one): np.load(one.scores) for one in found if one.scores}
    return {
        **describe(held, task),
        **judge(task, outcomes, theirs, n_samples),
        "promises": [asdict(one) for one in promises(task)],
        "peers": [peer_row(one, task) for one in found],
    }


def describe(held: DataSet, task: Task) -> dict[str, Any]:
    return {
        "name": held.name,
        "about": held.about,
        "shift": held.shift,
        "labels": len(held.labels),
        "accuracy": held.accuracy,
        "fit": {"tokens": len(held.fit.gold), "pairs": len(task.fit_pairs), "documents": held.fit.n_documents},
        "test": {"tokens": len(held.test.gold), "pairs": len(task.test), "documents": held.test.n_documents},
    }


def judge(task: Task, outcomes: dict[str, Outcome], theirs: dict[str, Floats], n_samples: int) -> dict[str, Any]:
    """Figures of our methods, and what they say of auto."""
    scores = {method: outcome.scores for method, outcome in outcomes.items()}
    auto = scores[AUTO]
    fixed = {name: one for name, one in scores.items() if not name.startswith(AUTO)}
    paper = {name: fixed[name] for name in (f"TFG-5 {method}" for method in PAPER)}
    ours = {name: asdict(figures(task.test, one, task.groups)) for name, one in scores.items()}
    floor = floors(task.test, auto, task.groups)
    best_of_paper = {
        key: min(ours[name][key] for name in [*paper, *(f"SCW {method}" for method in PAPER)]) for key in ("smce", "mean_gmce")
    }
    return {
        "ours": {
            name: {**ours[name], "seconds": outcomes[name].seconds, "chosen": outcomes[name].about} for name in scores
        },
        "never_worse": {
            loss: asdict(never_worse(task.test, task.documents, auto, {**fixed, **theirs}, loss, n_samples)) for loss in LOSSES
        },
        "against_paper": {loss: against(task.test, task.documents, auto, paper, loss, 2000) for loss in LOSSES},
        "calibration": {
            key: {"auto": ours[AUTO][key], "best_of_paper": best_of_paper[key], "floor95": floor[key],
                  "held": ours[AUTO][key] <= best_of_paper[key] + floor[key]}
            for key in best_of_paper
        },
    }  # fmt: skip


def peer_name(one: PeerResult) -> str:
    return f"{one.peer} {one.method}, {one.how}"


def peer_row(one: PeerResult, task: Task) -> dict[str, Any]:
    row = {key: value for key, value in asdict(one).items() if key != "scores"}
    if one.scores:
        row.update(asdict(figures(task.test, np.load(one.scores), task.groups)))
    return row


# What is printed


def better(row: dict[str, Any], loss: str) -> bool:
    """auto is better than TFG-5 with each of the paper's three methods: every interval lies below 0."""
    return all(one["high"] is not None and one["high"] < 0 for one in row["against_paper"][loss].values())


def acceptance(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the issue asks of auto, counted over the data sets."""
    return {
        "sets": len(rows),
        "never_worse": {loss: sum(row["never_worse"][loss]["held"] for row in rows) for loss in LOSSES},
        "better_than_paper": {loss: sum(better(row, loss) for row in rows) for loss in LOSSES},
        "calibration": {key: sum(row["calibration"][key]["held"] for row in rows) for key in ("smce", "mean_gmce")},
    }


def said(held: bool) -> str:
    return "yes" if held else "**no**"


def markdown(result: dict[str, Any]) -> str:
    """The page: what `head` and `row` print."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        show(result)
    return printed.getvalue()


def show(result: dict[str, Any]) -> None:
    rows, total = result["sets"], result["acceptance"]
    print(f"""# Quality benchmark

Made by `{result["command"]}`; do not edit. Lower is better everywhere.

`auto` is that of version {version("spacy-calib")}.

## Is auto ever worse, and is it better?

Never worse: by document bootstrap, all of Holm's simultaneous one-sided {100 * COVERAGE:g} % bounds of (auto - fixed method) stay \
under {100 * MARGIN:g} % of the raw loss, over all fixed methods of ours and all peers. Held on \
{total["never_worse"]["log_loss"]} of {total["sets"]} sets for log loss, {total["never_worse"]["brier"]} for Brier.
""")
    for loss, name in (("log_loss", "Log loss"), ("brier", "Brier")):
        head(
            f"| {name} | raw | TFG-5 isotonic | auto | best fixed | of | auto - best | hardest rival | bound | margin | held |"
        )
        for one in rows:
            show_never(one, loss)
        print()
    print(f"""Better than TFG-5 with each of the paper's three methods (paired {100 * COVERAGE:g} % intervals below 0): \
{total["better_than_paper"]["log_loss"]} of {total["sets"]} sets for log loss, {total["better_than_paper"]["brier"]} for Brier.
""")
    head(f"| auto - TFG-5 ... | {' | '.join(f'{way}, {loss.replace(chr(95), chr(32))}' for loss in LOSSES for way in PAPER)} |")
    for one in rows:
        found = [one["against_paper"][loss][f"TFG-5 {way}"] for loss in LOSSES for way in PAPER]
        row(one["name"], *(f"{at['estimate']:+.4f} ({at['low']:+.4f} to {at['high']:+.4f})" for at in found))
    print("""
Calibration error of auto against the least of the paper's six (TFG-5 and SCW), with the floor's 95 % quantile as the margin:
""")
    head("| set | SMCE auto | paper's best | floor | held | mean GMCE auto | paper's best | floor | held |")
    for one in rows:
        errors = [one["calibration"][key] for key in ("smce", "mean_gmce")]
        keys = ("auto", "best_of_paper", "floor95")
        row(one["name"], *(cell for at in errors for cell in (*(f"{at[key]:.4f}" for key in keys), said(at["held"]))))
    print("""
Sets of tags (`--sets`) of auto: the share of test tokens whose set holds the right tag, with its 95 % interval by document; mean size; \
share of tokens without a promise (their `calib_set` is None, here their entries up to the cut count):
""")
    kinds = (f"{one['coverage']}, {100 * (1 - one['alpha']):g} %" for one in rows[0]["promises"])
    head(f"| set | {' | '.join(kinds)} |")
    for one in rows:
        row(one["name"] + (" (shift)" if one["shift"] else ""), *map(promised, one["promises"]))
    for one in rows:
        show_set(one)


def show_never(one: dict[str, Any], loss: str) -> None:
    """A row of whether auto is worse."""
    never, ours = one["never_worse"][loss], one["ours"]
    losses = [ours[way][loss] for way in ("raw", "TFG-5 isotonic", AUTO)]
    upper = "-" if never["upper"] is None else f"{never['upper']:+.4f}"
    best = f"{losses[-1] - never['best_difference']:.4f}", never["best"], f"{never['best_difference']:+.4f}"
    rest = never["rival"], upper, f"{never['margin']:.4f}", said(never["held"])
    row(one["name"], *(f"{at:.4f}" for at in losses), *best, *rest)


def promised(one: dict[str, Any]) -> str:
    held = f"{one['held']:.3f} ({one['low']:.3f} to {one['high']:.3f})"
    return f"{held}; {one['size']:.2f}; {100 * one['out_of_reach']:.0f} %"


def show_set(one: dict[str, Any]) -> None:
    """Every method on a data set."""
    parts = (f"{name}: {at['tokens']:,} tokens, {at['pairs']:,} pairs, {at['documents']:,} documents" for name, at in (
        ("fit", one["fit"]), ("test", one["test"])
    ))  # fmt: skip
    shift = " The test data is of another kind than the fit data." if one["shift"] else ""
    print(f"""
## {one["name"]}

{one["about"]}. {one["labels"]} labels, accuracy {one["accuracy"]:.4f}; {"; ".join(parts)}.{shift}

auto chose {one["ours"][AUTO]["chosen"]}.
""")
    head("| method | log loss | Brier | SMCE | mean GMCE | seconds |")
    peers = {f"{of['peer']} {of['version']} {of['method']}, {of['how']}": of for of in one["peers"] if not of["failure"]}
    for name, found in {**one["ours"], **peers}.items():
        cells = (f"{found[key]:.4f}" for key in ("log_loss", "brier", "smce", "mean_gmce"))
        row(f"**{name}**" if name == AUTO else name, *cells, f"{found['seconds']:.1f}")
    failures = [of for of in one["peers"] if of["failure"]]
    print(
        *["\nFailed:\n"] * bool(failures),
        *(f"- {of['peer']} {of['method']}, {of['how']}: {of['failure']}" for of in failures),
        sep="\n",
    )


def main() -> int:
    parser = make_parser(__doc__, cache=True)
    parser.add_argument("--sets", nargs="+", choices=tuple(DATA_SETS), default=list(DATA_SETS), metavar="SET", help="data sets")
    parser.add_argument(
        "--peers", nargs="*", choices=tuple(PEERS), default=list(PEERS), metavar="PEER", help="peers; none for none"
    )
    parser.add_argument("--limit", type=float, default=600, help="seconds that a run of a peer may take")
    parser.add_argument("--samples", type=int, default=N_SAMPLES, help="resamples of the documents for Holm's bounds")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="folder for quality.md and quality.jsonl")
    options = parser.parse_args()
    shown = ["scripts/bench_quality.py"]
    for name in ("sets", "peers", "limit", "samples"):
        value = getattr(options, name)
        if value != parser.get_default(name):
            shown += [f"--{name}", *(map(str, value) if isinstance(value, list) else [f"{value:g}"])]
    rows = []
    for name in options.sets:
        rows.append(run_set(name, options.cache, options.peers, options.limit, options.samples))
        result = {"command": f"python {shlex.join(shown)}", "acceptance": acceptance(rows), "sets": rows}
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "quality.jsonl").write_text(json_lines(rounded(result)), encoding="utf8")
        (options.output / "quality.md").write_text(markdown(result), encoding="utf8")
    print(json.dumps(acceptance(rows), indent=2))
    return 0


def json_lines(result: dict[str, Any]) -> str:
    """A line for the command and what it found, one for each set, one for each method of ours and each run of a peer on it."""
    lines: list[dict[str, Any]] = [{key: value for key, value in result.items() if key != "sets"}]
    for one in result["sets"]:
        lines.append({"set": one["name"], **{key: value for key, value in one.items() if key not in ("name", "ours", "peers")}})
        lines += [{"set": one["name"], "ours": name, **found} for name, found in one["ours"].items()]
        lines += [{"set": one["name"], **found} for found in one["peers"]]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def rounded(value: Any) -> Any:
    """Plain data with numbers of six digits, so that the file stays small."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
