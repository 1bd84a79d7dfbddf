"""The page of `calib view` in a browser: it shows, reacts, asks nobody else, runs nothing of a text, and can be used by everybody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from spacy_calib.calibration.cutoffs import Cutoffs
from spacy_calib.plugins.report.view_server import Server, Viewer
from tests.conftest import revive

from .test_report import axe_faults

EVERY = ("minor", "moderate", "serious", "critical")
TEXT = "the red duck saw a light run ."
EVIL = "<script>alert(1)</script> </textarea><img src=x onerror=alert(2)> \"onfocus=alert(3) autofocus='' javascript:alert(4)"


@contextmanager
def served(viewer: Viewer) -> Iterator[str]:
    with Server(viewer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.address
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def address(fitted_bytes) -> Iterator[str]:
    """Where the page is served, of a pipeline with one calib pipe."""
    with served(Viewer(revive(fitted_bytes))) as its_address:
        yield its_address


@contextmanager
def opened(browser: Any, address: str, width: int = 1280, **settings: Any) -> Iterator[Any]:
    """The page. At the end it must have asked nobody else, complained of nothing and opened no dialog."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
    page, faults = context.new_page(), []
    page.on("request", lambda request: request.url.startswith((f"{address}/", "data:")) or faults.append(request.url))
    page.on("console", lambda message: message.type in ("error", "warning") and faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    yield page
    context.close()
    assert [one for one in faults if "400 (Bad Request)" not in one] == []


def show(page: Any, text: str) -> None:
    """Type a text and send it by the keyboard."""
    page.fill("#text", text)
    with page.expect_response("**/show?0"):
        page.press("#text", "Control+Enter")
    page.wait_for_selector("body:not([aria-busy])")


@pytest.fixture
def page(browser, address) -> Iterator[Any]:
    with opened(browser, address) as held:
        show(held, TEXT)
        yield held


def scores(page: Any, kind: str) -> list[float]:
    return page.eval_on_selector_all(f"#{kind} [data-score]", "found => found.map((one) => Number(one.dataset.score))")


def cut(page: Any, value: int) -> None:
    page.eval_on_selector("#cut", "(one, value) => { one.value = value; one.dispatchEvent(new Event('input')); }", value)


def test_it_shows_calibrated_and_raw_and_both(page):
    assert page.text_content("#calibrated .cb-text").startswith("the")
    assert len(scores(page, "calibrated")) == len(scores(page, "raw")) == 8
    assert scores(page, "calibrated") != scores(page, "raw")
    assert "of 8 words by calibrated scores" in page.text_content("#summary")
    for kind, seen in (("calibrated", (True, False)), ("raw", (False, True)), ("both", (True, True))):
        page.check(f"input[value={kind}]")
        assert (page.is_visible("#calibrated"), page.is_visible("#raw")) == seen
    left, right = page.locator("#calibrated").bounding_box(), page.locator("#raw").bounding_box()
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]


def test_the_cut_off_marks_what_is_below_it(page):
    for value in (0, 40, 75, 100):
        cut(page, value)
        below = {kind: sum(100 * score < value for score in scores(page, kind)) for kind in ("calibrated", "raw")}
        for kind, n in below.items():
            assert page.locator(f"#{kind} .below").count() == n
        told = ", ".join(f"{n} of 8 by {kind} scores" for kind, n in below.items())
        assert page.text_content("#below") == f"Below {value} %: {told}."
        stops = page.locator("#calibrated [tabindex='0']").count()
        assert stops == below["calibrated"] + (
            page.locator("#calibrated [data-score]").first.get_attribute("class").count("below") == 0
        )
    assert page.get_attribute("#cut", "aria-valuetext") == "100 %"


def test_text_and_result_come_before_what_explains_them(page):
    tops = [
        page.locator(selector).bounding_box()["y"] for selector in ("#text", "#shown", "#told", "#look", ".cb-legend", "#kept")
    ]
    assert tops == sorted(tops)


@pytest.mark.parametrize("share", [0.0, 0.4375])
def test_the_cut_off_of_the_pipeline_is_where_the_slider_starts(browser, fitted_bytes, share):
    viewer = Viewer(revive(fitted_bytes))
    viewer.views[0] = viewer.views[0]._replace(cutoffs=Cutoffs(0.8, 0.95, "all", {"all": share}))
    with served(viewer) as its_address, opened(browser, its_address) as page:
        show(page, TEXT)
        printed = f"{100 * share:.1f}".removesuffix(".0")
        assert page.text_content("#at") == f"{printed} %, as set in the pipeline"
        assert page.locator("#calibrated .below").count() == sum(score < share for score in scores(page, "calibrated"))
        cut(page, 90)
        assert page.text_content("#at") == "90 %"


def test_alternatives_open_on_hover_and_on_keyboard_focus(page):
    tips = "#calibrated .cb-tip:visible"
    assert page.locator(tips).count() == 0
    page.locator("#calibrated [data-score]").nth(3).hover()
    assert "before calibration" in page.text_content(tips)
    page.mouse.move(0, 0)
    cut(page, 0)
    page.focus("#ask button")
    page.keyboard.press("Tab")
    focused = "[...document.querySelectorAll('#calibrated [data-score]')].indexOf(document.activeElement)"
    assert (page.evaluate(focused), page.locator(tips).count()) == (0, 1)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert (page.evaluate(focused), page.locator(tips).count()) == (1, 1)
    page.keyboard.press("Escape")
    assert page.locator(tips).count() == 0


def test_a_hostile_text_stays_text(page):
    show(page, EVIL)
    for kind in ("calibrated", "raw"):
        read = page.eval_on_selector(
            f"#{kind} .cb-text",
            "one => { const own = one.cloneNode(true); own.querySelectorAll('.cb-tip').forEach((tip) => tip.remove()); return own.textContent; }",
        )
        assert read == EVIL
    assert page.locator("img, #shown script, textarea + textarea").count() == 0
    page.wait_for_timeout(100)  # for what would run later
    show(page, "\ud800 שלום \u202eabc")
    assert "שלום" in page.text_content("#calibrated .cb-text")


def test_a_fault_is_said_and_the_old_text_goes(page):
    show(page, " ")
    assert page.text_content("#fault") == "There is no text; type or paste one."
    assert not page.is_visible("#result")
    show(page, "a cat .")
    assert page.text_content("#fault") == ""
    assert len(scores(page, "raw")) == 3


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 380), ("dark", 380)])
def test_everybody_can_read_it_and_nothing_is_clipped(browser, address, scheme, width):
    with opened(browser, address, width, color_scheme=scheme) as page:
        assert axe_faults(page, EVERY) == []
        show(page, f"{TEXT} {'Donaudampfschiff' * 8}")
        page.check("input[value=both]")
        assert axe_faults(page, EVERY) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("#calibrated [data-score]").nth(6).focus()
        box = page.locator("#calibrated .cb-tip:visible").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        word = page.locator("#calibrated [data-score]").nth(6).bounding_box()
        assert word["y"] + word["height"] <= box["y"] or box["y"] + box["height"] <= word["y"]
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        labels = page.eval_on_selector_all(
            "#text, #way, #cut, input[name=kind]", "found => found.map((one) => one.labels.length)"
        )
        assert labels == [1] * 6
