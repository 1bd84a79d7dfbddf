"""Picture of how soon each review order finds the errors (Figure 3 of Mejer & Crammer 2010)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...optional import figure_class

# Okabe and Ito's palette; lines differ in style too, for print in grey.
_STYLES = {
    "calibrated": ("#0072B2", "-", 2.2),
    "raw": ("#D55E00", "--", 1.6),
    "margin": ("#009E73", "-.", 1.4),
    "entropy": ("#CC79A7", ":", 1.8),
    "random": ("0.6", "-", 1.0),
}


def plot_recall(shares: Sequence[float], recalls: Mapping[str, Sequence[float]], *, unit: str = "token", ax: Any = None) -> Any:
    """Plot the share of the errors that a review has found against the share of units reviewed.

    shares (Sequence[float]): Shares of the units, in [0, 1]. recalls (Mapping): Name of an order -> share of all errors found
    at each of `shares`. unit (str): What is reviewed. ax: Matplotlib axes; None makes a new figure. RETURNS: The axes.
    RAISES C061: matplotlib is not installed.
    """
    if ax is None:
        ax = figure_class()(figsize=(5.2, 3.8), layout="constrained").subplots()
    for name, curve in recalls.items():
        color, style, width = _STYLES.get(name, ("0.3", "-", 1.0))
        x, y = ([100 * share for share in values] for values in (shares, curve))
        ax.plot(x, y, color=color, linestyle=style, linewidth=width, label=name)
    ax.set(xlabel=f"% of {unit}s reviewed, most doubtful first", ylabel="% of errors found", xlim=(0, 100), ylim=(0, 101))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, title="order by", loc="lower right")
    return ax
