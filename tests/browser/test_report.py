"""The report page in a browser: its pictures are seen, it asks the network for nothing, runs nothing of the data, and can be read by everybody."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from spacy_calib.plugins.report.page import render_report
from tests.plugins.report.made_up import EVIL_TAG, EVIL_WORD, evil_contents

DIAGRAM = "#view-0 > figure svg"


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    """The page as a file."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_report(evil_contents()), encoding="utf-8", newline="\n")
    return path.as_uri()


@contextmanager
def opened(browser: Any, address: str, width: int = 1000, **settings: Any) -> Iterator[Any]:
    """The page. At the end it must have asked for nothing, complained of nothing and opened no dialog."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
    page = context.new_page()
    faults: list[str] = []
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or faults.append(request.url))
    page.on("console", lambda message: message.type in ("error", "warning") and faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    yield page
    context.close()
    assert faults == []


def open_parts(page: Any) -> None:
    """Open all parts of the page that are collapsed at first."""
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")


@pytest.fixture(scope="module")
def page(browser, address) -> Iterator[Any]:
    with opened(browser, address) as held:
        open_parts(held)
        yield held


def test_every_picture_is_seen_and_has_a_text_alternative(page):
    pictures = page.get_by_role("img")
    assert pictures.count() == page.locator("svg").count() == 11
    for i in range(11):
        assert pictures.nth(i).is_visible()
        box = pictures.nth(i).bounding_box()
        assert box["width"] > 250
        assert box["height"] > 150


def test_a_curve_is_drawn_where_its_numbers_are(page):
    """The diagonal of the diagram says where 0 and 1 are; there is a point for each row of its table."""
    diagonal = page.get_attribute(f"{DIAGRAM} path[style*='stroke-dasharray: 1,']", "d")
    left, bottom, right, top = map(float, re.findall(r"[\d.]+", diagonal))
    uses = "found => found.map((one) => [one.x.baseVal.value, one.y.baseVal.value])"
    cells = "rows => rows.map((row) => [0, 1, 2].map((i) => row.cells[i].textContent))"
    rows = page.eval_on_selector_all("#view-0 > figure tbody tr", cells)
    assert len(rows) == 20
    for kind, score, share in rows:
        x, y = left + float(score) * (right - left), bottom + float(share) * (top - bottom)
        points = page.eval_on_selector_all(f"{DIAGRAM} use[style*='--{kind}']", uses)
        assert min(abs(x - point[0]) + abs(y - point[1]) for point in points) < 0.1


def test_a_link_leads_to_the_other_view(page):
    page.click("nav a >> nth=1")
    assert page.url.endswith("#name-1")
    assert abs(page.locator("#name-1").bounding_box()["y"]) < 60
    page.evaluate("scrollTo(0, 0)")


def test_words_and_tags_of_the_data_stay_text(page):
    assert page.locator("mark", has_text=EVIL_WORD).count() > 0
    assert page.locator("#view-0 .tags th", has_text=EVIL_TAG).count() == 1
    assert page.locator("img, script").count() == 0


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


def test_dark_is_dark(browser, address):
    colours = {}
    for scheme in ("light", "dark"):
        with opened(browser, address, color_scheme=scheme) as page:
            ground = "getComputedStyle(document.body).backgroundColor"
            line = f"getComputedStyle(document.querySelector(\"{DIAGRAM} [style*='--raw']\")).stroke"
            label = f"getComputedStyle(document.querySelector({(DIAGRAM + ' text')!r})).fill"
            colours[scheme] = page.evaluate(f"[{ground}, {line}, {label}]")
    assert colours["light"] == ["rgb(255, 255, 255)", "rgb(184, 74, 0)", "rgb(27, 29, 33)"]
    assert colours["dark"] == ["rgb(23, 24, 28)", "rgb(255, 157, 92)", "rgb(240, 241, 243)"]


def test_a_phone_does_not_scroll_sideways(browser, address):
    with opened(browser, address, 380) as page:
        figures = page.locator("#view-0 .scroll:has(.figures)")
        assert figures.evaluate("one => one.scrollWidth <= one.clientWidth")
        open_parts(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        boxes = page.eval_on_selector_all("svg", "found => found.map((one) => one.getBoundingClientRect().right)")
        assert len(boxes) == 11
        assert max(boxes) <= 380
        sizes = page.eval_on_selector_all(
            "svg text", "found => found.map((one) => one.getBoundingClientRect()).map((one) => Math.min(one.width, one.height))"
        )
        assert sum(size > 7 for size in sizes) > 0.9 * len(sizes)


def test_verdict_diagram_and_table_are_open_and_all_else_is_one_click_away(browser, address):
    with opened(browser, address) as page:
        seen = "found => found.filter((one) => one.checkVisibility()).map((one) => one.tagName)"
        assert page.eval_on_selector_all("#view-0 :is(.verdict, svg, table)", seen) == ["DIV", "svg", "TABLE"]
        parts = page.locator("#view-0 details.part")
        titles = page.eval_on_selector_all("#view-0 .part > summary h3", "found => found.map((one) => one.textContent)")
        assert (parts.count(), len(titles)) == (7, 7)
        for i in range(7):
            parts.nth(i).locator("summary").first.click()
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
        assert page.evaluate(script) == []


def test_paper_shows_all_in_light_colours(browser, address):
    with opened(browser, address, color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        assert page.is_visible("#view-0 .numbers td >> nth=0")
        assert page.is_visible("#view-1 svg >> nth=0")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_without_javascript_all_is_read(browser, address):
    with opened(browser, address, java_script_enabled=False) as page:
        assert page.is_visible("#view-0 .verdict")
        assert page.is_visible("#view-1 svg >> nth=0")
        page.click("#view-1 .part:has(.tags) > summary")
        assert page.is_visible("#view-1 .tags")
        assert page.locator("#view-0 .tags tbody tr").count() == 6
