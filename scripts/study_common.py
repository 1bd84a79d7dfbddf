"""What the studies share: options, tables as Markdown, and curves."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.studies import Bins, Estimates
from analysis.synthetic import MAPS, Synthetic
from tqdm import tqdm

from spacy_calib.cli.shared.atomic import write_file
from spacy_calib.cli.shared.results import write_json
from spacy_calib.pages.plots import figure_class, picture_bytes

KIND_NAMES = {"count": "{:g} adaptive bins", "size": "bins of {:g}", "root": "bins of {:g} sqrt(n)"}
# Okabe and Ito's palette, without its yellow
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "osD^vP"
HEADER = "| true error | pairs | bins | pairs a bin | mean | bias | deviation | rmse | coverage | width | debiased: bias | rmse | bootstrap: coverage | width |"


def add_options(parser: argparse.ArgumentParser, repeats: int) -> None:
    parser.add_argument("--beta", type=float, nargs=2, default=[0.3, 0.1], metavar=("A", "B"), help="Scores ~ Beta(A, B)")
    parser.add_argument(
        "--truth",
        nargs="+",
        default=["identity", "power:1.3", "step:0.1"],
        metavar="MAP[:STRENGTH]",
        help=f"P(hit | score): {', '.join(MAPS)}",
    )
    parser.add_argument("--repeats", type=int, default=repeats, help="Samples drawn")
    parser.add_argument("--draws", type=int, default=200, help="Draws of Algorithm 2 for an interval")
    parser.add_argument(
        "--bootstrap", action="store_true", help="Look at the interval by bootstrap too; takes several times as long"
    )
    parser.add_argument("--seed", type=int, default=0, help="Of the samples and draws")
    add_outputs(parser)


def add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, help="JSON file for all figures")
    parser.add_argument("--plot", type=Path, help="PNG or SVG file for the picture")
    parser.add_argument("--silent", action="store_true", help="Print nothing but errors")


def sources_of(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Synthetic]:
    """The truths asked for, by their words. RAISES CalibError: a setting out of range."""
    sources = {}
    for words in options.truth:
        name, _, strength = words.partition(":")
        try:
            value = float(strength or 0)
        except ValueError:
            parser.error(f"--truth wants MAP or MAP:STRENGTH with a number, but {words!r} was given")
        first, second = options.beta
        sources[words] = Synthetic(first, second, map=name, strength=value)
    return sources


def progress(options: argparse.Namespace, what: str) -> Any:
    """A wrapper for the numbers of samples that shows a bar."""

    def wrap(numbers: Iterable[int]) -> Iterable[int]:
        return tqdm(numbers, desc=what, unit="sample", disable=options.silent, leave=False)

    return wrap


def bins_name(kind: str, value: float) -> str:
    return KIND_NAMES[kind].format(value).replace(" 1 sqrt", " sqrt")


def all_bins(counts: Sequence[int], sizes: Sequence[int], roots: Sequence[float]) -> list[Bins]:
    """RAISES CalibError: one of them is below 1 (roots: not above 0)."""
    given = (("count", counts), ("size", sizes), ("root", roots))
    return [Bins(kind, value) for kind, values in given for value in values]


def show(rows: Sequence[Estimates]) -> None:
    """Print a Markdown table."""
    print(HEADER)
    print("|" + " ---: |" * (HEADER.count("|") - 1))
    for row in rows:
        print(
            f"| {row.true:.4f} | {row.n:,} | {bins_name(row.bins, row.value)} | {row.pairs_a_bin:,} | {row.mean:.4f} | {row.bias:+.4f} "
            f"| {row.deviation:.4f} | {row.rmse:.4f} | {100 * row.coverage:.1f} % | {row.width:.4f} "
            f"| {row.debiased_bias:+.4f} | {row.debiased_rmse:.4f} | {of_bootstrap(row)} |"
        )


def of_bootstrap(row: Estimates) -> str:
    if row.bootstrap_coverage is None:
        return "- | -"
    return f"{100 * row.bootstrap_coverage:.1f} % | {row.bootstrap_width:.4f}"


def save(path: Path | None, rows: dict[str, list[Estimates]]) -> None:
    """RAISES CalibError: the file cannot be written."""
    if path is not None:
        write_json(path, {truth: [asdict(row) for row in of_truth] for truth, of_truth in rows.items()})


# (field, title) of the three rows of panels
PANELS = (
    ("mean", "estimate"),
    ("rmse", "root mean squared distance to the true error"),
    ("coverage", "share of 95 % intervals that hold the true error"),
)


def curves(
    path: Path | None, rows: dict[str, list[Estimates]], x: str, x_label: str, key: str, names: dict[Any, str], title: str
) -> None:
    """Draw estimate, rmse and coverage against a field, a column of panels for each truth.

    x, key (str): Fields of the rows: the horizontal axis, and what tells the curves apart. names (dict): Value of key -> name of the curve.
    RAISES CalibError: matplotlib is not installed.
    """
    if path is None:
        return
    figure = figure_class()(figsize=(4.6 * len(rows), 9.2), layout="constrained")
    axes = figure.subplots(len(PANELS), len(rows), sharex=True, sharey="row", squeeze=False)
    for (truth, of_truth), column in zip(rows.items(), axes.T, strict=True):
        for ax, (field, name) in zip(column, PANELS, strict=True):
            panel(ax, of_truth, x, field, key, names)
            ax.set_ylabel(name if ax in axes[:, 0] else "", fontsize="small")
        column[0].axhline(of_truth[0].true, color="black", linewidth=1, linestyle="--", label="true error")
        column[0].set_title(f"P(hit | score): {truth}, true error {of_truth[0].true:.4f}", fontsize="small")
        column[2].axhline(0.95, color="black", linewidth=1, linestyle="--")
        column[2].set(ylim=(-0.03, 1.03), xlabel=x_label)
    for ax in (axes[0, 0], axes[2, 0]):
        ax.legend(frameon=False, fontsize="small")
    figure.suptitle(title, fontsize="medium")
    write_file(path, picture_bytes(figure, path.suffix, 110))


def panel(ax: Any, rows: Sequence[Estimates], x: str, field: str, key: str, names: dict[Any, str]) -> None:
    """One curve for each value of key that the rows have, and a dotted one for the other way to estimate it."""
    ax.set_xscale("log")
    for (value, name), color, marker in zip(names.items(), COLORS, MARKERS, strict=False):
        own = sorted((row for row in rows if key_of(row, key) == value), key=lambda row: getattr(row, x))
        places = [getattr(row, x) for row in own]
        ax.plot(
            places, [getattr(row, field) for row in own], color=color, marker=marker, markersize=4, linewidth=1.3, label=name
        )
        if field == "mean":
            spread = [[row.mean + sign * row.deviation for row in own] for sign in (-1, 1)]
            ax.fill_between(places, *spread, color=color, alpha=0.15, linewidth=0)
        what, other = second_curve(own, field)
        if other:
            ax.plot(places, other, color=color, linestyle=":", linewidth=1.3, label=f"{name}, {what}")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def second_curve(rows: Sequence[Estimates], field: str) -> tuple[str, list[float]]:
    """What another estimate or interval says of a field: its name and values; none where it was not asked for."""
    if field == "coverage":
        return "by bootstrap", [row.bootstrap_coverage for row in rows if row.bootstrap_coverage is not None]
    return "debiased", [row.true + row.debiased_bias if field == "mean" else row.debiased_rmse for row in rows]


def key_of(row: Estimates, key: str) -> Any:
    return (row.bins, row.value) if key == "both" else getattr(row, key)
