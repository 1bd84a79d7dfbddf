"""The pages of the quality benchmark: docs/research/tags.md, which can be read; quality.csv, a row for each method on each data set, or why it failed; quality.jsonl, all
that was found.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
from pathlib import Path
from typing import Any

from frame import head, row
from quality.judge import COVERAGE, LOSSES, MARGIN
from quality.ours import AUTO, PAPER

FIGURES = ("log_loss", "brier", "smce", "mean_gmce", "seconds")


def write(result: dict[str, Any], folder: Path) -> None:
    """All three files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "quality.jsonl").write_text(json_lines(rounded(result)), encoding="utf8")
    (folder / "quality.csv").write_text(table(result), encoding="utf8", newline="")
    (folder / "tags.md").write_text(markdown(result), encoding="utf8")


def markdown(result: dict[str, Any]) -> str:
    """The page: what `head` and `row` print."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        show(result)
    return printed.getvalue()


def methods_of(one: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The figures of every method on a data set, by its name: ours, then those of other packages that did not fail."""
    peers = {f"{of['peer']} {of['version']} {of['method']}, {of['how']}": of for of in one["peers"] if not of["failure"]}
    return {**one["ours"], **peers}


def least(found: dict[str, dict[str, Any]]) -> str:
    """The method with the least log loss; "" of none."""
    return min(found, key=lambda name: found[name]["log_loss"], default="")


def theirs(one: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: found for name, found in methods_of(one).items() if name not in one["ours"]}


def fixed(one: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: found for name, found in one["ours"].items() if not name.startswith(AUTO)}


def table(result: dict[str, Any]) -> str:
    """The CSV file."""
    written = io.StringIO()
    out = csv.writer(written, lineterminator="\n")
    out.writerow(("set", "method", *FIGURES, "failure"))
    for one in result["sets"]:
        out.writerows(
            (one["name"], name, *(f"{found[key]:.4f}" for key in FIGURES), "") for name, found in methods_of(one).items()
        )
        failed = (of for of in one["peers"] if of["failure"])
        empty = [""] * len(FIGURES)
        out.writerows((one["name"], f"{of['peer']} {of['method']}, {of['how']}", *empty, of["failure"]) for of in failed)
    return written.getvalue()


def show(result: dict[str, Any]) -> None:
    rows = result["sets"]
    print(f"""# Quality benchmark

Made by `{result["command"]}`; do not edit. Every method is fitted on one part of the documents of a data set and judged on another. Lower is better \
everywhere. The figures of all methods on all sets are in [quality.csv](quality.csv).

## Summary

Log loss of all pairs of a token and a tag. `auto` is what `calib fit` does by itself, `auto, scores alone` the same without a look at the words; \
"best of ours" and "best of others" are the method of this package, and of another, that happens to be best on the test part.
""")
    head("| data set | raw | TFG-5 isotonic (the paper) | best of ours, fixed | best of others | auto, scores alone | auto |")
    for one in rows:
        ours, others, own = one["ours"], theirs(one), fixed(one)
        cells = [
            ours["raw"],
            ours["TFG-5 isotonic"],
            own[least(own)],
            others.get(least(others)),
            ours.get(f"{AUTO}, scores alone"),
            ours[AUTO],
        ]
        row(f"[{one['name']}](#{one['name']})", *("-" if at is None else f"{at['log_loss']:.4f}" for at in cells))
    show_acceptance(result)
    for one in rows:
        show_set(one)


def show_acceptance(result: dict[str, Any]) -> None:
    """Is auto ever worse than a fixed method, better than the paper's three, and do its sets of tags hold what they promise?"""
    rows, total = result["sets"], result["acceptance"]
    print(f"""
## Is auto ever worse, and is it better?

Never worse: by document bootstrap, all of Holm's simultaneous one-sided {100 * COVERAGE:g} % bounds of (auto - fixed method) stay \
under {100 * MARGIN:g} % of the raw loss, over all fixed methods of ours and all of other packages. Held on \
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
Sets of tags of auto: the share of test tokens whose set holds the right tag, with its 95 % interval by document; mean size; \
share of tokens without a promise (their `calib_set` is None, here their entries up to the cut count):
""")
    kinds = (f"{one['coverage']}, {100 * (1 - one['alpha']):g} %" for one in rows[0]["promises"])
    head(f"| set | {' | '.join(kinds)} |")
    for one in rows:
        row(one["name"] + (" (shift)" if one["shift"] else ""), *map(promised, one["promises"]))


def said(held: bool) -> str:
    return "yes" if held else "**no**"


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
    """What a data set is, and the figures of a few methods."""
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
    found, others = methods_of(one), theirs(one)
    best = sorted(others, key=lambda name: others[name]["log_loss"])[:3]
    names = [
        "raw",
        *(f"TFG-5 {method}" for method in PAPER),
        least(fixed(one)),
        *best,
        *(name for name in found if name.startswith(AUTO)),
    ]
    for name in dict.fromkeys(names):
        cells = (f"{found[name][key]:.4f}" for key in FIGURES[:-1])
        row(f"**{name}**" if name == AUTO else name, *cells, f"{found[name]['seconds']:.1f}")
    if failed := dict.fromkeys(f"{of['peer']} {of['method']}" for of in one["peers"] if of["failure"]):
        print(f"\nFailed (why stands in quality.csv): {'; '.join(failed)}.")


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


def read(file: Path) -> dict[str, Any]:
    """What `write` wrote as quality.jsonl, rounded."""
    first, *lines = (json.loads(line) for line in file.read_text(encoding="utf8").splitlines())
    sets: list[dict[str, Any]] = []
    for line in lines:
        if "ours" in line:
            sets[-1]["ours"][line["ours"]] = {key: value for key, value in line.items() if key not in ("set", "ours")}
        elif "peer" in line:
            sets[-1]["peers"].append(line)
        else:
            sets.append({"name": line["set"], **line, "ours": {}, "peers": []})
    return {**first, "sets": sets}
