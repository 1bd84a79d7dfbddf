"""The page of `calib view` in a browser: it shows, asks nobody else, runs nothing of a text, and can be used by everybody."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

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
    """Type a text and send it."""
    page.fill("#text", text)
    with page.expect_navigation():
        page.click("button")


@pytest.fixture
def page(browser, address) -> Iterator[Any]:
    with opened(browser, address, java_script_enabled=False) as held:
        show(held, TEXT)
        yield held


def labels(page: Any, kind: str) -> list[str]:
    return page.locator(f"#{kind} mark span").all_text_contents()


def test_it_shows_calibrated_and_raw_side_by_side_without_javascript(page):
    assert len(labels(page, "calibrated")) == len(labels(page, "raw")) == 8
    assert labels(page, "calibrated") != labels(page, "raw")
    assert "of 8 words by calibrated scores" in page.text_content("#summary")
    left, right = page.locator("#calibrated").bounding_box(), page.locator("#raw").bounding_box()
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    assert page.input_value("#text") == TEXT


def test_text_and_result_come_before_what_explains_them(page):
    tops = [page.locator(selector).bounding_box()["y"] for selector in ("#text", "#calibrated", "#summary", "#drift", "#kept")]
    assert tops == sorted(tops)


def test_a_hostile_text_stays_text(browser, address):
    with opened(browser, address) as page:  # with scripts on: none may run
        show(page, EVIL)
        assert page.input_value("#text") == EVIL
        for kind in ("calibrated", "raw"):
            marks = page.locator(f"#{kind} mark")
            words = [marks.nth(i).evaluate("one => one.firstChild.textContent.trim()") for i in range(marks.count())]
            assert "".join(words) == "".join(EVIL.split())
        assert page.locator("img, script, textarea + textarea").count() == 0
        page.wait_for_timeout(100)  # for what would run later
        show(page, "שלום \u202eabc")
        assert "שלום" in page.text_content("#calibrated")


def test_a_fault_is_said_and_the_old_text_goes(page):
    show(page, " ")
    assert page.text_content(".fault") == "There is no text; type or paste one."
    assert page.locator("#calibrated").count() == 0
    show(page, "a cat .")
    assert page.locator(".fault").count() == 0
    assert len(labels(page, "raw")) == 3


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 380), ("dark", 380)])
def test_everybody_can_read_it_and_nothing_is_clipped(browser, address, scheme, width):
    with opened(browser, address, width, color_scheme=scheme) as page:
        assert axe_faults(page, EVERY) == []
        show(page, f"{TEXT} {'Donaudampfschiff' * 8}")
        assert axe_faults(page, EVERY) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        rights = page.eval_on_selector_all("mark, mark span", "found => found.map((one) => one.getBoundingClientRect().right)")
        assert max(rights) <= width
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        assert page.eval_on_selector_all("#text, #view", "found => found.map((one) => one.labels.length)") == [1, 1]
