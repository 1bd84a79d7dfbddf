"""The results of the quality benchmark: a part of docs/evidence.md, and quality.csv, a row for each method on each data set, or why it failed."""

from __future__ import annotations

import contextlib
import csv
import io
from pathlib import Path
from typing import Any

from frame import head, replace_part, row
from quality.judge import COVERAGE, MARGIN
from quality.ours import AUTO

FIGURES = ("log_loss", "brier", "smce", "mean_gmce", "seconds")


def write(result: dict[str, Any], folder: Path) -> None:
    """The table, and the part of the page if the folder has it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "quality.csv").write_text(table(result), encoding="utf8", newline="")
    if (page := folder / "evidence.md").exists():
        replace_part(page, "quality", markdown(result))


def markdown(result: dict[str, Any]) -> str:
    """The part of the page: what `head` and `row` print."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        show(result)
    return printed.getvalue()


def methods_of(data_set: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The figures of every method on a data set, by its name: ours, then those of other packages that did not fail."""
    peers = {
        f"{peer['peer']} {peer['version']} {peer['method']}, {peer['how']}": peer
        for peer in data_set["peers"]
        if not peer["failure"]
    }
    return {**data_set["ours"], **peers}


def lowest(rows: dict[str, dict[str, Any]]) -> str:
    """The method with the least log loss; "" of none."""
    return min(rows, key=lambda name: rows[name]["log_loss"], default="")


def table(result: dict[str, Any]) -> str:
    """The CSV file."""
    csv_text = io.StringIO()
    out = csv.writer(csv_text, lineterminator="\n")
    out.writerow(("set", "method", *FIGURES, "failure"))
    for data_set in result["sets"]:
        out.writerows(
            (data_set["name"], name, *(f"{rows[key]:.4f}" for key in FIGURES), "")
            for name, rows in methods_of(data_set).items()
        )
        failures = (peer for peer in data_set["peers"] if peer["failure"])
        empty = [""] * len(FIGURES)
        out.writerows(
            (data_set["name"], f"{peer['peer']} {peer['method']}, {peer['how']}", *empty, peer["failure"]) for peer in failures
        )
    return csv_text.getvalue()


def show(result: dict[str, Any]) -> None:
    """The log loss of a few methods on each data set, and whether auto is as good as asked."""
    rows, total = result["sets"], result["acceptance"]
    print(f"""Log loss of all pairs of a token and a tag, by `{result["command"]}`. `auto` is the default of `calib fit`, and "scores alone" is `auto` \
without context. "Best of ours" and "best of others" are the methods with the lowest loss on the test part. [quality.csv](quality.csv) has all \
methods, with Brier score, SMCE, GMCE and seconds.
""")
    head(
        "| data set | test tokens | right | raw | TFG-5 isotonic (the paper) | best of ours, fixed | best of others | auto, scores alone | auto |"
    )
    for data_set in rows:
        ours = data_set["ours"]
        peer_rows = {name: figures for name, figures in methods_of(data_set).items() if name not in ours}
        fixed_rows = {name: figures for name, figures in ours.items() if not name.startswith(AUTO)}
        cells = [
            ours["raw"],
            ours["TFG-5 isotonic"],
            fixed_rows[lowest(fixed_rows)],
            peer_rows.get(lowest(peer_rows)),
            ours.get(f"{AUTO}, scores alone"),
            ours[AUTO],
        ]
        losses = ("-" if cell is None else f"{cell['log_loss']:.4f}" for cell in cells)
        row(data_set["name"], f"{data_set['tokens']:,}", f"{100 * data_set['accuracy']:.1f} %", *losses)
    print(f"""
**Never worse**: Holm's simultaneous one-sided {100 * COVERAGE:g} % bounds of the difference (auto - fixed method), by document bootstrap, \
stay under {100 * MARGIN:g} % of the raw loss for all fixed methods, on {total["never_worse"]["log_loss"]} of {total["sets"]} sets.

**Better than the paper**: the paired {100 * COVERAGE:g} % intervals of the difference (auto - TFG-5 with each of the paper's three methods) lie \
below 0 on {total["better_than_paper"]["log_loss"]} of {total["sets"]} sets.
""")
