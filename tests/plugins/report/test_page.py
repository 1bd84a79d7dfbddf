"""The page: one file, nothing but text from the data, small enough with hundreds of tags."""

import re
import xml.etree.ElementTree as ET

import pytest

from spacy_calib.optional import figure_class
from spacy_calib.plugins.report.page import bounds, count, format_score, number, percent, render_report
from spacy_calib.plugins.report.page_pictures import svg_element
from tests.forked import in_own_process
from tests.plugins.report.made_up import (
    EVIL_TAG,
    EVIL_WORD,
    FACTS,
    contents_of,
    evil_contents,
    judged_of,
    random_corpus,
    view_of,
)
from tests.plugins.report.markup import ATTACK, Page


@pytest.fixture(scope="module")
def contents():
    return evil_contents(1500)


@pytest.fixture(scope="module")
def page(contents):
    return render_report(contents)


def test_every_element_is_closed_and_every_id_is_one(page):
    ids = [attributes["id"] for _, attributes in Page(page).elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_nothing_is_loaded_from_anywhere(page):
    for tag, attributes in Page(page).elements:
        assert tag not in ("img", "iframe", "object", "embed")
        assert not any(name.startswith("on") for name in attributes), tag
        if tag == "a":
            assert attributes["href"].startswith("#")
        elif "src" in attributes or "href" in attributes:
            assert attributes["href"] == "data:," if tag == "link" else attributes["href"].startswith("#")


def test_the_policy_allows_no_script_and_there_is_none(page):
    (policy,) = [a["content"] for tag, a in Page(page).elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    assert not {"script", "noscript", "button", "input", "select"} & {tag for tag, _ in Page(page).elements}


def test_words_and_tags_stay_text(page):
    reader = Page(page)
    assert {EVIL_WORD, EVIL_TAG} <= set(reader.shown)
    assert EVIL_WORD not in page
    assert EVIL_TAG not in page


def test_control_characters_in_tags_and_words_leave_the_page_whole():
    names = ("A\0B", "C\x1b[31m", "D\r\nE", "\u202eF", "G\x9b", "half \ud800")
    corpus = random_corpus(6, 1500, names=names, word="x\0y\x1b]0;z\x07")
    page = render_report(contents_of(view_of(corpus, judged_of(corpus), FACTS)))
    page.encode()
    reader = Page(page)
    assert not set("".join(reader.shown)) & {*map(chr, range(32)), "\x9b", "\u202e"} - {"\n", "\t"}
    assert "A\\x00B" in reader.shown


def test_the_same_contents_give_the_same_page(contents, page):
    assert render_report(contents) == page


def pictures(page: str) -> dict[str, ET.Element]:
    """Text alternative -> SVG of each picture."""
    found = [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", page, flags=re.S)]
    return {svg.attrib["aria-label"]: svg for svg in found}


def test_every_picture_has_a_text_alternative_and_its_numbers_in_a_table(contents, page):
    alternatives = "\n".join(pictures(page))
    for beginning in (
        "Reliability diagram of all tags", "Reliability diagram of the top tags", "Reliability diagram of Group 1 of the tags",
        "Reliability diagram of Group 2 of the labels", "Calibration error of each group of labels", "Accuracy of the most confident tags",
    ):  # fmt: skip
        assert beginning in alternatives
    assert len(pictures(page)) == 11  # tokens: all, top, two groups, coverage, errors; entities: the same without top
    text = " ".join(Page(page).shown)
    for view in contents["views"]:
        assert view["verdict"]["sentence"].replace(" %", "\xa0%") in text
        panels = [panel for name in ("reliability", "top", "groups") for panel in view["pictures"].get(name, ())]
        values = [
            value
            for panel in panels
            for kind in ("raw", "calibrated")
            for key in ("scores", "right", "low")
            for value in panel[kind][key]
        ]
        values += [row[kind] for row in view["table"]["errors"] for kind in ("raw", "calibrated", "floor95")]
        assert all(number(value) in text for value in values)
        assert percent(view["pictures"]["coverage"][0]["raw"][89], 2) in text
        assert all(f"{row['pairs']:,}" in text for row in view["tags"])


def test_a_picture_has_the_colours_of_the_style_sheet_and_names_of_its_own(page):
    for svg in pictures(page).values():
        styles = " ".join(element.attrib.get("style", "") for element in svg.iter())
        assert not re.search(r"#[0-9a-f]{3}|font-family", styles)
        assert {"var(--raw)", "var(--calibrated)"} <= set(re.findall(r"var\(--\w+\)", styles))
        ids = {element.attrib["id"] for element in svg.iter() if "id" in element.attrib}
        links = {element.attrib["href"].removeprefix("#") for element in svg.iter() if "href" in element.attrib}
        clips = set(re.findall(r"url\(#([^)]+)\)", " ".join(element.attrib.get("clip-path", "") for element in svg.iter())))
        assert links | clips <= ids
    assert {variable for variable in re.findall(r"var\((--\w+)\)", page)} <= set(re.findall(r"(--\w+):", page))


def test_text_in_a_picture_stays_text():
    figure = figure_class()(figsize=(2, 2))
    words = ["#0072b2 </svg><script>", 'style="fill: #d55e00"', "a & b"]
    for i, word in enumerate(words):
        figure.text(0.1, i / 4, word)
    svg = ET.fromstring(svg_element(figure, "x-", ATTACK))
    assert [element.text for element in svg.iter("text")] == words
    assert svg.attrib["aria-label"] == ATTACK


@in_own_process
def test_without_matplotlib_there_is_one_curve(contents, hide_package):
    hide_package("matplotlib")
    page = render_report(contents)
    for (_, svg), view in zip(
        re.findall(r'(<section class="view".*?)(<svg.*?</svg>)', page, flags=re.S), contents["views"], strict=True
    ):
        lines = {line.attrib["class"]: line.attrib["points"].split() for line in ET.fromstring(svg).iter("polyline")}
        (panel,) = view["pictures"]["reliability"]
        for kind, points in lines.items():
            assert len(points) == len(panel[kind]["scores"])
            x, y = map(float, points[3].split(","))
            assert ((x - 40) / 270, (280 - y) / 270) == pytest.approx(
                (panel[kind]["scores"][3], panel[kind]["right"][3]), abs=2e-3
            )
    assert page.count("<svg") == 2
    assert 'pip install "spacy-calib[plots]"' in page


def test_several_views_have_links_and_one_has_none(contents, page):
    assert re.findall(r'<a href="#(.*?)">(.*?)</a>', page) == [("name-0", "tagger: tokens"), ("name-1", "ner: entities")]
    assert "<a " not in render_report(contents_of(contents["views"][0]))


def test_what_was_skipped_and_how_it_was_made_are_said(contents):
    page = render_report({**contents, "skipped": ["Not judged: <b>"], "made": {"Versions": "spacy <3"}})
    text = " ".join(Page(page).shown)
    assert "Not judged: <b>" in text
    assert "spacy <3" in text


def test_six_hundred_tags_take_less_than_five_megabytes():
    corpus = random_corpus(600, 20_000)
    view = view_of(corpus, judged_of(corpus, 5), FACTS)
    assert len(view["tags"]) == 600
    assert len(render_report(contents_of(view)).encode()) < 5_000_000


def test_figures_as_they_are_shown():
    assert (number(0.12345), number(None), number(-0.5, 2)) == ("0.1235", "–", "−0.50")
    assert (count(12345), count(None)) == ("12,345", "–")
    assert (percent(0.12345), percent(None)) == ("12.3\xa0%", "–")
    shown = {0.9996: ">0.999", 1.0: "1.000", 0.0002: "<0.001", 0.0: "0.000", 0.25: "0.250"}
    assert {value: format_score(value) for value in shown} == shown
    assert bounds({"raw_low": 0.1, "raw_high": 0.25}, "raw", 2) == "0.10 to 0.25"
    assert bounds({"raw_low": None, "raw_high": None}, "raw") == bounds({}, "raw") == ""


def test_of_very_many_groups_the_picture_shows_the_first_and_the_mean(contents):
    (view, *_) = contents["views"]
    errors = view["table"]["errors"]
    many = [errors[0], *({**errors[1], "group": f"g{i}"} for i in range(60)), {**errors[-1], "calibrated": 0.123}]
    page = render_report({**contents, "views": [{**view, "table": {**view["table"], "errors": many}}]})
    (svg,) = [svg for name, svg in pictures(page).items() if name.startswith("Calibration error")]
    names = [text.text for text in svg.iter("text")]
    assert [f"group g{i}" in names for i in (11, 12, 59)] == [True, False, False]
    assert any("0.1230" in name for name in names)
