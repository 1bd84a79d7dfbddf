"""The report page in a browser: it draws, reacts, asks the network for nothing, runs nothing of the data, and can be read by everybody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from spacy_calib.plugins.report.page import render_report
from tests.plugins.report.made_up import EVIL_TAG, EVIL_WORD, evil_contents

POINTS = "#view-0 .diagram .point"
BARS = "#view-0 .scores .bar"


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    """The page as a file."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_report(evil_contents()), encoding="utf-8", newline="\n")
    return path.as_uri()


@contextmanager
def opened(browser: Any, address: str, width: int = 1000, **settings: Any) -> Iterator[Any]:
    """The page, drawn. At the end it must have asked for nothing, complained of nothing and opened no dialog."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
    page = context.new_page()
    faults: list[str] = []
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or faults.append(request.url))
    page.on("console", lambda message: message.type in ("error", "warning") and faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    if settings.get("java_script_enabled", True):
        page.wait_for_selector("html[data-drawn=yes]")
    yield page
    context.close()
    assert faults == []


def open_parts(page: Any) -> None:
    """Open all parts of the page that are collapsed at first, but for the diagram as a table."""
    page.evaluate("document.querySelectorAll('details.part').forEach((part) => { part.open = true; })")


@pytest.fixture(scope="module")
def page(browser, address) -> Iterator[Any]:
    with opened(browser, address) as held:
        open_parts(held)
        yield held


def shapes(page: Any, selector: str) -> list[str]:
    return page.eval_on_selector_all(
        selector, "found => found.map((one) => one.getAttribute('transform') || one.getAttribute('height'))"
    )


def until(page: Any, reached: Callable[[], bool]) -> None:
    """Drawing takes a moment: wait until it is so, for five seconds at most."""
    for _ in range(100):
        if reached():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it never came to be so")


def column(page: Any, number: int) -> list[str]:
    """A column of the tag table, top to bottom, the rows that are shown."""
    script = "(rows, i) => rows.filter((row) => !row.hidden).map((row) => row.cells[i].textContent)"
    return page.eval_on_selector_all("#view-0 .tags tbody tr", script, number)


def test_it_draws(page):
    assert len(shapes(page, POINTS)) == 20  # ten bins raw and ten calibrated
    assert len(shapes(page, BARS)) == 40
    assert page.locator("#view-0 .errors .point").count() == 8  # all, two groups, mean


def test_a_tag_and_a_group_have_diagrams_of_their_own(page):
    whole, bars = shapes(page, POINTS), shapes(page, BARS)
    seen = [whole]
    for chosen in ("tags:NN", "groups:1"):
        page.select_option("#view-0 .which", chosen)
        until(page, lambda: shapes(page, POINTS) not in seen and shapes(page, BARS) != bars)
        seen.append(shapes(page, POINTS))
    assert page.text_content("#view-0 .caption").startswith("group 1: ")
    page.select_option("#view-0 .which", "all")
    until(page, lambda: shapes(page, POINTS) == whole)


def test_the_table_under_the_diagram_follows_it(page):
    before = page.text_content("#view-0 .bins")
    page.select_option("#view-0 .which", "tags:NN")
    assert page.text_content("#view-0 .bins") != before
    page.select_option("#view-0 .which", "all")
    assert page.text_content("#view-0 .bins").split() == before.split()


def test_raw_or_calibrated_or_both(page):
    both = shapes(page, POINTS)
    for kind in ("raw", "calibrated"):
        page.check(f"#view-0 input[value={kind}]")
        until(page, lambda: len(shapes(page, POINTS)) == 10)
    page.check("#view-0 input[value=both]")
    until(page, lambda: shapes(page, POINTS) == both)


def test_a_tag_in_the_table_opens_its_diagram(page):
    page.click("#view-0 .tags tbody th button:text-is('NN')")
    assert page.input_value("#view-0 .which") == "tags:NN"
    assert page.text_content("#view-0 .caption").startswith("NN: ")
    page.select_option("#view-0 .which", "all")


@pytest.mark.parametrize(("number", "name"), [(0, "Tag"), (3, "Pairs"), (6, "Right")])
def test_the_table_sorts_both_ways(page, number, name):
    head = page.locator("#view-0 .tags thead th").nth(number)
    assert head.text_content() == name
    orders = {}
    for _ in range(2):
        head.locator("button").click()
        orders[head.get_attribute("aria-sort")] = column(page, number)
    assert set(orders) == {"ascending", "descending"}
    if number:
        values = [float(text.replace(",", "")) for text in orders["ascending"]]
        assert values == sorted(values)
        assert len(set(values)) > 1
    assert orders["descending"] == orders["ascending"][::-1]
    assert page.locator("#view-0 .tags thead th[aria-sort]").count() == 1


def test_the_table_can_be_searched(page):
    page.fill("#view-0 .find", "n")
    assert column(page, 0) == ["NN"]
    assert page.text_content("#view-0 .found") == "1 of 6"
    page.fill("#view-0 .find", "no such tag")
    assert column(page, 0) == []
    page.fill("#view-0 .find", "")
    assert len(column(page, 0)) == 6


def test_hover_shows_the_values_of_a_point(page):
    page.locator(POINTS).nth(4).hover()
    tip = page.wait_for_selector(".tip:not([hidden])").inner_text()
    for title in ("mean score", "right", "95 %", "pairs"):
        assert title in tip
    assert any(character.isdigit() for character in tip)
    page.mouse.move(0, 0)


def test_the_switch_shows_the_other_view(page):
    assert page.is_visible("#view-0")
    assert not page.is_visible("#view-1")
    page.click("button.switch >> nth=1")
    assert page.is_visible("#view-1 .diagram svg")
    assert not page.is_visible("#view-0")
    assert page.get_attribute("button.switch >> nth=1", "aria-pressed") == "true"
    page.click("button.switch >> nth=0")


def test_the_keyboard_reaches_and_works_every_control(page):
    page.focus("#view-0 .which")
    before = page.input_value("#view-0 .which")
    page.keyboard.press("ArrowDown")
    assert page.input_value("#view-0 .which") != before
    page.select_option("#view-0 .which", "all")
    page.focus("#view-0 .tags thead th >> nth=3 >> button")
    page.keyboard.press("Enter")
    assert page.locator("#view-0 .tags thead th").nth(3).get_attribute("aria-sort")
    page.focus("#view-0 .numbers summary")
    page.keyboard.press("Enter")
    assert page.is_visible("#view-0 .bins td >> nth=0")
    page.keyboard.press("Enter")


def test_words_and_tags_of_the_data_stay_text(page):
    assert page.locator("mark", has_text=EVIL_WORD).count() > 0
    assert page.locator("#view-0 .tags th", has_text=EVIL_TAG).count() == 1
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
    page.select_option("#view-0 .which", f"tags:{EVIL_TAG}")
    assert page.text_content("#view-0 .caption").startswith(EVIL_TAG)
    page.select_option("#view-0 .which", "all")


def axe_faults(page: Any, impacts: tuple[str, ...] = ("serious", "critical")) -> list[str]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response
    assert len(found["passes"]) > 20
    return [f"{fault['id']}: {fault['nodes'][0]['target']}" for fault in found["violations"] if fault["impact"] in impacts]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1000), ("dark", 1000), ("light", 380), ("dark", 380)])
def test_axe_finds_nothing_serious(browser, address, scheme, width):
    with opened(browser, address, width, color_scheme=scheme) as page:
        assert axe_faults(page) == []
        open_parts(page)
        assert axe_faults(page) == []
        page.click("button.switch >> nth=1")
        assert axe_faults(page) == []


def test_dark_is_dark(browser, address):
    colours = {}
    for scheme in ("light", "dark"):
        with opened(browser, address, color_scheme=scheme) as page:
            ground = "getComputedStyle(document.body).backgroundColor"
            point = f"getComputedStyle(document.querySelector({POINTS!r})).fill"
            label = "getComputedStyle(document.querySelector('#view-0 .diagram text')).fill"
            colours[scheme] = page.evaluate(f"[{ground}, {point}, {label}]")
    assert all(light != dark for light, dark in zip(*colours.values(), strict=True))


def test_a_phone_does_not_scroll_sideways(browser, address):
    with opened(browser, address, 380) as page:
        figures = page.locator("#view-0 .scroll:has(.figures)")
        assert figures.evaluate("one => one.scrollWidth <= one.clientWidth")
        open_parts(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        box = page.locator("#view-0 .diagram svg").bounding_box()
        assert box["x"] + box["width"] <= 380
        page.click("button.switch >> nth=1")
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        assert page.locator("#view-1 .diagram svg").bounding_box()["width"] > 250


def test_a_table_that_goes_on_sideways_says_so(browser, address):
    hints = "[...document.querySelectorAll('#view-0 .hint')].filter((one) => one.checkVisibility()).length"
    with opened(browser, address, 380) as page:
        open_parts(page)
        page.wait_for_timeout(100)
        wide = (
            "[...document.querySelectorAll('#view-0 .scroll')]"
            ".filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1).length"
        )
        assert page.evaluate(hints) == page.evaluate(wide) > 0
        page.set_viewport_size({"width": 1400, "height": 900})
        page.wait_for_timeout(100)
        assert page.evaluate(hints) == page.evaluate(wide)


def test_verdict_diagram_and_table_are_open_and_all_else_is_one_click_away(browser, address):
    with opened(browser, address) as page:
        seen = "found => found.filter((one) => one.checkVisibility()).map((one) => one.className)"
        assert page.eval_on_selector_all("#view-0 :is(.verdict, svg, table)", seen)[1:] == [{}, "figures"]
        parts = page.locator("#view-0 details.part")
        titles = page.eval_on_selector_all("#view-0 .part > summary h3", "found => found.map((one) => one.textContent)")
        assert (parts.count(), len(titles)) == (6, 6)
        for i in range(6):
            parts.nth(i).locator("summary").click()
            assert parts.nth(i).locator("p").first.is_visible()
        page.click("main > .part > summary")
        assert page.is_visible("dl")


def test_no_part_is_light_in_dark_mode(browser, address):
    """Tables, pictures, code and fields have the dark ground of the page, or one nearly as dark."""
    script = """() => [...document.querySelectorAll('body *')].filter((one) => one.checkVisibility()).map((one) => {
        const [r, g, b, a = 1] = getComputedStyle(one).backgroundColor.match(/[\\d.]+/g).map(Number);
        return [one.tagName, a * (r + g + b) / 3];
    }).filter(([name, light]) => light > 110)"""
    with opened(browser, address, color_scheme="dark") as page:
        open_parts(page)
        assert page.evaluate(script) == [["BUTTON", pytest.approx(241, abs=3)]]  # the view that is shown


def test_the_likeliest_label_and_accuracy_against_coverage_are_drawn(page):
    before = shapes(page, POINTS)
    page.select_option("#view-0 .which", "top")
    until(page, lambda: "top tag of" in page.inner_text("#view-0 .caption"))
    until(page, lambda: shapes(page, POINTS) != before)
    page.select_option("#view-0 .which", "all")
    until(page, lambda: shapes(page, POINTS) == before)
    assert page.locator("#view-0 .coverage .curve").count() == 2


def test_paper_shows_all_in_light_colours(browser, address):
    with opened(browser, address, color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert page.is_visible("#view-0 .bins td >> nth=0")
        assert page.is_visible("#view-1 .diagram svg")
        assert not page.is_visible("#view-0 .controls >> nth=0")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("document.querySelectorAll('details[open]').length") == 0


def test_without_javascript_the_tables_are_read(browser, address):
    with opened(browser, address, java_script_enabled=False) as page:
        assert page.is_visible("noscript p")
        assert page.is_visible("#view-0 .verdict")
        page.click("#view-1 .part:has(.tags) > summary")
        assert page.is_visible("#view-1 .tags")
        assert page.locator("#view-0 .tags tbody tr").count() == 6
        assert not page.is_visible("#view-0 .which")
