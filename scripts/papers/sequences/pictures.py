"""Figures 2 to 4 of Mejer & Crammer (2010) from the files of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from frame import COLORS, MARKERS, new_figure, save_figure

from spacy_calib.plugins.report.plots import quiet_frame

from .judge import BINS, FIRST, WAYS, Way, bins_of
from .tables import NAMES, Found

TITLES = {"np": "noun phrases", "spanish": "Spanish entities"}
LOOKS: dict[str, dict[str, Any]] = {
    way: {"color": color, "marker": marker}
    for way, color, marker in zip(("kd_pc", "crf", "delta", "wkbv", "kd_fixed", "kbv"), COLORS, MARKERS, strict=True)
}
SHOWN = [("cw", way) for way in WAYS if way != "crf"] + [("crf", "crf")]


def draw_all(folder: Path, results: Sequence[Found]) -> None:
    """Draw confidence_ranking.png (figure 2), confidence_found.png (3) and confidence_reliability.png (4).

    RAISES CalibError: matplotlib is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shown_results = [result for result in results if ("cw", "kd_pc") in result.figures]
    for name, draw in {"ranking": ranking, "found": found_first, "reliability": reliability}.items() if shown_results else ():
        save_figure(folder / f"confidence_{name}.png", draw(shown_results), 120)


def _panels(n: int, width: float, height: float, down: int = 1, **axis_options: Any) -> tuple[Any, Any]:
    figure = new_figure(width * n + 0.3, height * down)
    return figure, figure.subplots(down, n, squeeze=False, **axis_options)


def ranking(results: Sequence[Found]) -> Any:
    """Average precision and RMSE of each way, raw and calibrated, with intervals."""
    figure, axes = _panels(2, 4.4, 2.6, len(results))
    for row, result in zip(axes, results, strict=True):
        for ax, figure_name in zip(row, ("average_precision", "rmse"), strict=True):
            for place, name in enumerate(SHOWN):
                look, values = LOOKS[name[1]], result.figures[name][figure_name]
                low, high = values.interval
                ax.plot([low, high], [place, place], color=look["color"], linewidth=3, alpha=0.35)
                ax.plot(values.estimate, place, linestyle="none", markersize=6, **look)
                _label_line(ax, f"{values.estimate:.3f}", high, place, x=5)
                if figure_name == "rmse":
                    error = result.after[name]["rmse"].estimate
                    ax.plot(error, place, linestyle="none", markerfacecolor="white", markersize=6, **look)
            ax.set_yticks(range(len(SHOWN)), [NAMES[way] for _, way in SHOWN])
            ax.set_ylim(len(SHOWN) - 0.5, -0.5)
            ax.margins(x=0.15)
            ax.set_xlim(left=0)
            quiet_frame(ax)
            ax.tick_params(axis="y", length=0)
            ax.set_title(TITLES[result.corpus] if ax is row[0] else "", loc="left", fontsize="medium")
        chance = result.random["cw"].estimate
        row[0].axvline(chance, color="0.6", linestyle=":", linewidth=1)
        _label_line(row[0], "random", chance, len(SHOWN) - 0.6, x=3, va="baseline", fontsize="x-small", color="0.4")
    axes[-1][0].set_xlabel("average precision of finding wrong words")
    axes[-1][1].set_xlabel("RMSE over 20 bins (white: after isotonic regression)")
    return figure


def _label_line(ax: Any, words: str, level: float, place: float, x: float = 4, **look: Any) -> None:
    """Words a little to the right of a place."""
    options = {"va": "center", "fontsize": "small", **look}
    ax.annotate(words, (level, place), xytext=(x, 0), textcoords="offset points", **options)


def found_first(results: Sequence[Found]) -> Any:
    """Wrong words found beyond those of Delta, against words looked at."""
    figure, axes = _panels(len(results), 4.2, 3.4)
    looked_at = np.arange(0, FIRST + 1, 50)
    for ax, result in zip(axes[0], results, strict=True):
        curves = {name: np.mean([_count_found(way, looked_at) for way in result.quarters.ways[name]], axis=0) for name in SHOWN}
        ends = []
        for name, curve in curves.items():
            if name[1] != "delta":
                ax.plot(looked_at, curve - curves["cw", "delta"], color=LOOKS[name[1]]["color"], linewidth=1.5)
                ends.append((float(curve[-1] - curves["cw", "delta"][-1]), NAMES[name[1]], LOOKS[name[1]]["color"]))
        ax.hlines(0, 0, FIRST, color=LOOKS["delta"]["color"], linewidth=1.2)
        _label_ends(ax, FIRST, [*ends, (0.0, NAMES["delta"], LOOKS["delta"]["color"])])
        ax.set_title(TITLES[result.corpus], loc="left", fontsize="medium")
        ax.set(xlabel="words looked at, least sure first", xlim=(0, FIRST * 1.22), xticks=range(0, FIRST + 1, 1000))
        quiet_frame(ax)
    axes[0][0].set_ylabel("wrong words found beyond Delta's")
    return figure


def _count_found(way: Way, looked_at: Any) -> Any:
    """Wrong words among so many of the least sure; words that are equally sure in any order."""
    wrong = np.cumsum(~way.right[way.order])[way.ends]
    return np.interp(looked_at, np.append(0, way.ends + 1), np.append(0, wrong))


def _label_ends(ax: Any, x: float, ends: Sequence[tuple[float, str, str]]) -> None:
    """Names at the right end of curves, moved apart. ends: Place, name and colour of each."""
    low, high = ax.get_ylim()
    ends = sorted(ends)
    places = np.array([y for y, *_ in ends])
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + 0.065 * (high - low))
    places -= np.mean(places - np.array([y for y, *_ in ends]))
    for place, (_, name, color) in zip(places.tolist(), ends, strict=True):
        _label_line(ax, name, x, place, color=color, annotation_clip=False)


def reliability(results: Sequence[Found]) -> Any:
    """Share of right words in each twentieth of the confidence, raw and calibrated."""
    figure, axes = _panels(2, 3.6, 3.6, len(results), sharex=True, sharey=True)
    shown = [("cw", "kd_pc"), ("cw", "kd_fixed"), ("cw", "wkbv"), ("crf", "crf")]
    for row, result in zip(axes, results, strict=True):
        panels = ((result.quarters.ways, "as it is"), (result.quarters.after, "after isotonic regression"))
        for ax, (ways, words) in zip(row, panels, strict=True):
            ax.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle=":", zorder=0)
            for name in shown:
                centres, shares = _shares(ways[name])
                ax.plot(centres, shares, linewidth=1.2, markersize=4, label=NAMES[name[1]], **LOOKS[name[1]])
            ax.set(xlim=(0, 1), ylim=(0, 1))
            ax.set_title(f"{TITLES[result.corpus]}, {words}", loc="left", fontsize="medium")
            ax.set_box_aspect(1)
            quiet_frame(ax)
        row[0].set_ylabel("share that is right")
    axes[0][0].legend(edgecolor="none", fontsize="small", loc="upper left")
    for ax in axes[-1]:
        ax.set_xlabel("confidence, centre of the bin")
    return figure


def _shares(of_quarters: Sequence[Way], minimum: int = 50) -> tuple[Any, Any]:
    """(centres, shares) of the bins that hold so many words."""
    scores, right = (np.concatenate([getattr(result, name) for result in of_quarters]) for name in ("sure", "right"))
    counts = np.bincount(bins_of(scores), minlength=BINS)
    hits = np.bincount(bins_of(scores), weights=right, minlength=BINS)
    is_kept = counts >= minimum
    return (np.arange(BINS)[is_kept] + 0.5) / BINS, hits[is_kept] / counts[is_kept]
