"""Pictures: what is drawn, that files are the same every time, and what happens without matplotlib."""

import xml.etree.ElementTree as ET
from functools import partial

import numpy as np
import pytest

from spacy_calib.errors import CalibError
from spacy_calib.optional import picture_bytes
from spacy_calib.plugins.report.plot_data import HISTOGRAM_BINS, Panel, reliability_panel, share_interval
from spacy_calib.plugins.report.plots import (
    CALIBRATED_COLOR,
    RAW_COLOR,
    draw_panels,
    draw_picture,
    plot_coverage,
    plot_errors,
    reliability_diagram,
    score_histogram,
)
from tests.forked import in_own_process

from ...strategies import bernoulli


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_labels_with_control_characters_and_dollars_are_drawn(plt):
    title = "PRP$ and $x_{$ \0 \x1b \ud800 <b>"
    figures = [compare([panel(title)], title), draw_picture("errors", [{**ROW, "group": title}], title)]
    for figure in figures:
        ET.fromstring(picture_bytes(figure, ".svg"))
        assert picture_bytes(figure, ".png", 20).startswith(b"\x89PNG")


def test_a_picture_with_too_many_pixels_is_refused(plt):
    figure = compare([panel("all")])
    for dpi in (8000, 20000):
        with pytest.raises(CalibError, match="pixels is too large to draw; choose fewer tags, or SVG"):
            picture_bytes(figure, ".png", dpi)
    picture_bytes(figure, ".svg", 20000)


def panel(title: str, n: int = 200, seed: int = 0) -> Panel:
    scores, hits = bernoulli(n, seed, power=2)
    return reliability_panel(scores, scores**2, hits, title)


compare = partial(draw_panels, histograms=False)


def test_points_stand_at_the_bins_of_the_scores(plt):
    # Two bins: {0.1, 0.3} without a hit, {0.6, 0.8} with one of two.
    _, ax = plt.subplots()
    reliability_diagram([0.1, 0.3, 0.6, 0.8], [0, 0, 1, 0], ax=ax, n_bins=2, label="raw")
    drawn = ax.containers[0]
    np.testing.assert_allclose(drawn.lines[0].get_xdata(), [0.2, 0.7])
    np.testing.assert_allclose(drawn.lines[0].get_ydata(), [0.0, 0.5])
    segments = drawn.lines[2][0].get_segments()
    low, high = share_interval(np.array([0.0, 0.5]), np.array([2.0, 2.0]))
    np.testing.assert_allclose([segment[:, 1] for segment in segments], np.stack([low, high], axis=1), atol=1e-12)
    assert ax.get_legend_handles_labels()[1] == ["raw 0.200"]  # both bins are off by .2


def test_one_panel_for_each_with_curves_that_differ_in_colour_marker_and_line(plt):
    figure = compare([panel("all"), panel("group 1", seed=1), panel("group 2", seed=2)], title="EWT")
    assert [ax.get_title() for ax in figure.axes] == ["all", "group 1", "group 2"]
    assert figure.get_suptitle() == "EWT"
    for ax in figure.axes:
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert [label.split()[0] for label in labels] == ["raw", "calibrated"]
        raw, calibrated = (container.lines[0] for container in ax.containers)
        assert (raw.get_color(), calibrated.get_color()) == (RAW_COLOR, CALIBRATED_COLOR)
        assert raw.get_marker() != calibrated.get_marker()
        assert raw.get_linestyle() != calibrated.get_linestyle()


def test_a_panel_without_pairs_is_drawn_empty(plt):
    # A group without pairs has no error: nothing to draw, and no reason to fail.
    figure = compare([panel("all"), reliability_panel([], [], [], "group 5")])
    assert [ax.get_title() for ax in figure.axes] == ["all", "group 5"]
    for container in figure.axes[1].containers:
        assert len(container.lines[0].get_xdata()) == 0


def test_neither_a_histogram_of_nothing_nor_many_figures_warn(plt, recwarn):
    score_histogram(reliability_panel([], [], [], "none")).figure.canvas.draw()
    for seed in range(22):
        compare([panel("all", n=20, seed=seed)])
    assert [str(one.message) for one in recwarn] == []
    assert plt.get_fignums() == []  # pyplot keeps every figure that it makes, and warns from the 21st on


def test_the_backend_that_the_user_chose_stays(plt):
    plt.switch_backend("svg")
    try:
        compare([panel("all", n=20)])
        assert plt.get_backend().lower() == "svg"
    finally:
        plt.switch_backend("agg")


@in_own_process
def test_without_matplotlib_the_error_names_the_extra(hide_package):
    hide_package("matplotlib")
    with pytest.raises(CalibError, match=r'\[C061\] Plots need matplotlib, .* `pip install "spacy-calib\[plots\]"`'):
        compare([panel("all")])


def numbers(title: str = "all", n: int = 200, seed: int = 0, note: str = "") -> object:
    scores, hits = bernoulli(n, seed, power=2)
    return reliability_panel(scores, scores**2, hits, title, note)


def test_histograms_stand_under_their_diagram_on_the_same_scale(plt):
    figure = draw_panels([numbers("a"), numbers("b"), numbers("c")], columns=2)
    figure.draw_without_rendering()
    boxes = [ax.get_position() for ax in figure.axes]
    assert len(boxes) == 6
    for above, below in zip(boxes[::2], boxes[1::2], strict=True):
        assert (above.x0, above.x1) == pytest.approx((below.x0, below.x1))
        assert below.y1 < above.y0
    assert boxes[4].x0 == pytest.approx(boxes[0].x0), "the third stands in a second row"
    assert boxes[4].y1 < boxes[1].y0


def test_the_histogram_shows_every_score(plt):
    one = numbers()
    calibrated, raw = score_histogram(one).patches
    np.testing.assert_array_equal(raw.get_data().values, one.raw.histogram)
    np.testing.assert_array_equal(calibrated.get_data().values, one.calibrated.histogram)
    assert len(raw.get_data().edges) == HISTOGRAM_BINS + 1


def test_a_note_does_not_lie_on_the_title(plt):
    figure = draw_panels([numbers("Group 1", note="2 tags: A · B\ncounted 10 to 20 times")])
    figure.draw_without_rendering()
    ax = figure.axes[0]
    [note] = [text for text in ax.texts if text.get_text().startswith("2 tags")]
    assert not note.get_window_extent().overlaps(ax.title.get_window_extent())


def error_row(group: str, raw: float | None, calibrated: float | None, **more: float | None) -> dict:
    bare = {"true_low": None, "true_high": None, "floor95": None}
    return {"group": group, "raw": raw, "calibrated": calibrated, **bare, **more}


def test_errors_before_and_after(plt):
    rows = [
        error_row("all", 0.08, 0.01, true_low=0.0, true_high=0.02, floor95=0.015),
        error_row("1", 0.02, 0.05),
        error_row("2", None, None),
        error_row("mean", 0.05, 0.03),
    ]
    ax = plot_errors(rows)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["all (SMCE)", "group 1", "mean (GMCE)"]
    circles = [line for line in ax.lines if line.get_marker() == "o"]
    squares = [line for line in ax.lines if line.get_marker() == "s"]
    assert [line.get_xdata()[0] for line in circles] == [0.08, 0.02, 0.05]
    assert [line.get_xdata()[0] for line in squares] == [0.01, 0.05, 0.03]
    assert [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "None"] == [[0.0, 0.02]]
    assert [bar.get_width() for bar in ax.patches] == [0.015]
    assert "0.0200 → 0.0500" in [text.get_text() for text in ax.texts]


TITLE = "ner of en_core_web_sm 3.8.0, judged on a_file_of_gold_with_quite_a_long_name.spacy = THE FIT DATA (entities)"
ROW = {"group": "all", "raw": 0.2, "calibrated": 0.1, "floor95": 0.05, "true_low": 0.0, "true_high": 0.1}
COVERED = {"shares": [0.5, 1.0], "raw": [0.9, 0.8], "calibrated": [0.95, 0.8]}


@pytest.mark.parametrize("draw", [
    lambda: draw_panels([reliability_panel([0.5], [0.4], [True], "All tags", "1 pair")], TITLE),
    lambda: draw_panels([reliability_panel([0.5], [0.4], [True], "x")] * 3, TITLE),
    lambda: compare([panel("in domain\nnews")] * 3, TITLE),
    lambda: draw_picture("errors", [ROW], TITLE),
    lambda: draw_picture("coverage", [COVERED], TITLE),
])  # fmt: skip
def test_no_title_or_label_is_cut_or_covered(plt, draw):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = draw()
    FigureCanvasAgg(figure).draw()
    texts = [figure._suptitle, *(ax.title for ax in figure.axes)]
    assert any(TITLE.split()[-1] in text.get_text() for text in texts)
    for text in texts:
        box = text.get_window_extent()
        assert not text.get_text() or (box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y1 <= figure.bbox.height)
    for ax in figure.axes:
        assert ax.xaxis.label.get_window_extent().y0 >= 0
        assert ax.title.get_window_extent().y1 <= figure._suptitle.get_window_extent().y0


def test_every_picture_names_its_axes(plt):
    axes = [reliability_diagram([0.5], [1]), score_histogram(reliability_panel([0.5], [0.4], [True])), plot_coverage(COVERED)]
    assert axes[0].figure.axes == [axes[0]]  # its own figure
    named = [(ax.get_xlabel(), ax.get_ylabel()) for ax in axes]
    assert named == [
        ("score", "share that is right"),
        ("score", "pairs"),
        ("share kept, most confident first", "accuracy of what is kept"),
    ]
    np.testing.assert_array_equal(axes[-1].lines[1].get_ydata(), COVERED["calibrated"])
