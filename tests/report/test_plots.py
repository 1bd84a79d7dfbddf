"""Reliability diagrams: what is drawn, and what happens without matplotlib."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.metrics import calibration_error
from spacy_calib.report.plots import compare_reliability, reliability_diagram

from ..strategies import bernoulli


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def panel(title: str, n: int = 200, seed: int = 0) -> dict:
    scores, hits = bernoulli(n, seed, power=2)
    return {"title": title, "hits": hits, "raw": scores, "calibrated": scores**2}


def test_points_stand_at_the_bins_of_the_scores(plt):
    # Two bins: {0.1, 0.3} without a hit, {0.6, 0.8} with one of two.
    _, ax = plt.subplots()
    reliability_diagram([0.1, 0.3, 0.6, 0.8], [0, 0, 1, 0], ax=ax, n_bins=2, label="raw")
    drawn = ax.containers[0]
    np.testing.assert_allclose(drawn.lines[0].get_xdata(), [0.2, 0.7])
    np.testing.assert_allclose(drawn.lines[0].get_ydata(), [0.0, 0.5])
    # Bars of 1.96 sqrt(p (1 - p) / n): none for the first, 1.96 * sqrt(0.25 / 2) either way for the second.
    segments = drawn.lines[2][0].get_segments()
    half = 1.96 * np.sqrt(0.125)
    np.testing.assert_allclose([segment[:, 1] for segment in segments], [[0, 0], [0.5 - half, 0.5 + half]], atol=1e-12)


def test_the_label_holds_the_error(plt):
    _, ax = plt.subplots()
    one = panel("x")
    reliability_diagram(one["raw"], one["hits"], ax=ax, label="raw")
    error = calibration_error(one["raw"], one["hits"])
    assert ax.get_legend_handles_labels()[1] == [f"raw {error:.3f}"]


def test_one_panel_for_each(plt, tmp_path):
    figure = compare_reliability([panel("all"), panel("group 1", seed=1), panel("group 2", seed=2)], title="EWT")
    assert [ax.get_title() for ax in figure.axes] == ["all", "group 1", "group 2"]
    assert figure.get_suptitle() == "EWT"
    for ax in figure.axes:
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert [label.split()[0] for label in labels] == ["raw", "calibrated"]
        assert len(ax.containers) == 2
    path = tmp_path / "reliability.png"
    figure.savefig(path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_panel_without_pairs_is_drawn_empty(plt):
    # A group without pairs has no error: nothing to draw, and no reason to fail.
    empty = {"title": "group 5", "hits": np.zeros(0, bool), "raw": np.zeros(0), "calibrated": np.zeros(0)}
    figure = compare_reliability([panel("all"), empty])
    assert [ax.get_title() for ax in figure.axes] == ["all", "group 5"]
    for container in figure.axes[1].containers:
        assert len(container.lines[0].get_xdata()) == 0


def test_many_figures_can_be_made(plt):
    # pyplot keeps every figure it made and warns from the 21st on; a loop over groups must not run into that.
    for seed in range(22):
        compare_reliability([panel("all", n=20, seed=seed)])


def test_the_backend_that_the_user_chose_stays(plt):
    plt.switch_backend("svg")
    try:
        compare_reliability([panel("all", n=20)])
        assert plt.get_backend().lower() == "svg"
    finally:
        plt.switch_backend("agg")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    for name in {"matplotlib", "matplotlib.figure", "matplotlib.pyplot", *sys.modules}:
        if name.split(".")[0] == "matplotlib":
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CalibError, match=r"\[C061\] Plots need matplotlib, .* `pip install spacy-calib\[plots\]`"):
        compare_reliability([panel("all")])
