"""The page: one file, nothing but text from the data, small enough with hundreds of tags."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.plugins.report.page import bounds, count, number, percent, render_report, score, script_json
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
from tests.plugins.report.test_marked_text import Page

# Shown by nobody, and full of other people's text.
SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.S)


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
            assert (tag, attributes["href"]) == ("link", "data:,")


def test_the_policy_allows_the_scripts_that_are_there_and_no_other(page):
    (policy,) = [a["content"] for tag, a in Page(page).elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    codes = [found["code"] for found in SCRIPT.finditer(page) if not found["attributes"]]
    assert len(codes) == 2
    for code in codes:
        assert base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() in policy


def test_words_and_tags_stay_text(page):
    reader = Page(page)
    assert {EVIL_WORD, EVIL_TAG} <= set(reader.shown)
    assert EVIL_WORD not in page
    assert EVIL_TAG not in page
    assert [tag for tag, _ in reader.elements].count("script") == 3


def test_control_characters_in_tags_and_words_leave_the_page_whole():
    names = ("A\0B", "C\x1b[31m", "D\r\nE", "\u202eF", "G\x9b", "half \ud800")
    corpus = random_corpus(6, 1500, names=names, word="x\0y\x1b]0;z\x07")
    page = render_report(contents_of(view_of(corpus, judged_of(corpus), FACTS)))
    page.encode()
    reader = Page(page)
    assert not set("".join(reader.shown)) & {*map(chr, range(32)), "\x9b", "\u202e"} - {"\n", "\t"}
    (data,) = [json.loads(found["code"]) for found in SCRIPT.finditer(page) if "json" in found["attributes"]]
    values = [attributes["value"] for tag, attributes in reader.elements if tag == "option"]
    tags = [value.removeprefix("tags:") for value in values if value.startswith("tags:")]
    assert "A\\x00B" in tags
    assert set(tags) <= set(data["views"][0]["tags"])


@given(
    st.recursive(
        st.text("a<>&\"'\\\u2028\u2029\x00😀") | st.floats(allow_nan=False, allow_infinity=False), st.lists, max_leaves=8
    )
)
def test_json_in_a_script_element_is_the_same_data_without_markup(data):
    text = str(script_json(data))
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == data


def test_the_same_contents_give_the_same_page(contents, page):
    assert render_report(contents) == page


def test_without_javascript_the_tables_are_there(contents, page):
    text = " ".join(Page(page).shown)
    assert "need JavaScript" in text
    view = contents["views"][0]
    assert view["verdict"]["sentence"].replace(" %", "\xa0%") in text
    for row in view["tags"]:
        assert f"{row['pairs']:,}" in text
    for value in (view["figures"][0]["calibrated"], view["groups"][0]["raw"], view["curves"]["all"]["raw"]["right"][3]):
        assert number(value) in text


def test_several_views_have_a_switch_and_one_has_none(contents, page):
    assert page.count('class="switch"') == 2
    assert 'class="switch"' not in render_report(contents_of(contents["views"][0]))


def test_what_was_skipped_and_how_it_was_made_are_said(contents):
    page = render_report({**contents, "skipped": ["Not judged: <b>"], "made": {"Versions": "spacy <3"}})
    text = " ".join(Page(page).shown)
    assert "Not judged: <b>" in text
    assert "spacy <3" in text


def test_six_hundred_tags_take_less_than_five_megabytes():
    corpus = random_corpus(600, 20_000)
    view = view_of(corpus, judged_of(corpus, 5), FACTS)
    assert len(view["curves"]["tags"]) == 600
    assert len(render_report(contents_of(view)).encode()) < 5_000_000


def test_figures_as_they_are_shown():
    assert (number(0.12345), number(None), number(-0.5, 2)) == ("0.1235", "–", "−0.50")
    assert (count(12345), count(None)) == ("12,345", "–")
    assert (percent(0.12345), percent(None)) == ("12.3\xa0%", "–")
    assert [score(value) for value in (0.9996, 1.0, 0.0002, 0.0, 0.25)] == [">0.999", "1.000", "<0.001", "0.000", "0.250"]
    assert bounds({"raw_low": 0.1, "raw_high": 0.25}, "raw", 2) == "0.10 to 0.25"
    assert bounds({"raw_low": None, "raw_high": None}, "raw") == bounds({}, "raw") == ""


def test_of_very_many_groups_the_picture_shows_the_first_and_the_mean(contents):
    (view, *_) = contents["views"]
    errors = view["table"]["errors"]
    many = [errors[0], *({**errors[1], "group": f"g{i}"} for i in range(60)), {**errors[-1], "calibrated": 0.123}]
    page = render_report({**contents, "views": [{**view, "table": {**view["table"], "errors": many}}]})
    assert "The first 38 groups; the table below has all." in page
    assert "g37" in page
    assert "g38" not in page
    assert "0.123" in page
    assert "The first" not in render_report(contents)
