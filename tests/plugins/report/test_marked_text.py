"""Marked text: shades that everybody can read, text that stays as it is, tags that close, crossing stretches."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.plugins.report.marked_text import (
    SCORE_EDGES,
    STEP_NAMES,
    DisplayOptions,
    MarkedText,
    TextMark,
    Word,
    nest_marks,
    percent,
    step_of,
    style,
    to_html,
)

from ...strategies import score

ATTACK = "<img src=x onerror=alert(1)>"
# What may stand in a text: markup, quotes, white space, letters of both directions, a combining mark, an emoji.
nasty = st.text(st.sampled_from("a<>&\"' \n\t;/=שא1.e\u0301😀"), max_size=6)


# Elements that have no end.
VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """Reads markup as a browser would: `elements` with their attributes, the `texts` of the passages without chips and hovers, and all that is `shown`."""

    aside = frozenset({"cb-tip", "cb-chip"})

    def __init__(self, markup: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.shown: list[str] = []
        self.feed(markup)
        self.close()
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag, attrs):
        held = dict(attrs)
        self.elements.append((tag, held))
        if tag not in VOID:
            self.open.append((tag, held.get("class") or ""))
        if held.get("class") == "cb-text":
            self.texts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        classes = [name for _, names in self.open for name in names.split()]
        if "cb-text" in classes and not self.aside & set(classes):
            self.texts[-1] += data
        if not {"script", "style"} & {tag for tag, _ in self.open}:
            self.shown.append(data)

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        return [held for _, held in self.elements if name in (held.get("class") or "").split()]


def word(text: str, score: float | None = 0.8, tag: str = "NN", space: str = " ") -> Word:
    return Word(text, space, tag, score, score, () if score is None else ((tag, score), ("VB", 0.1), ("JJ", 0.05)))


def passage(*words: Word, **frame: str) -> MarkedText:
    return MarkedText(**{"lang": "en", "direction": "ltr", "title": "", **frame}, words=words)


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def themes() -> dict[str, dict[str, str]]:
    """The colours of the light and the dark theme, as the style sheet names them."""
    light, dark = (dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in style().split("@media", 1))
    return {"light": light, "dark": dark}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_on_every_shade(theme):
    colours = themes()[theme]
    grounds = [colours[f"d{i}"] for i in range(len(STEP_NAMES))]
    for ground in [*grounds, colours["ground"]]:
        assert contrast(colours["text"], ground) >= 4.5
    # Words without a score, the help line and the tags of confident words are quiet, and on the page's own ground.
    assert contrast(colours["quiet"], colours["ground"]) >= 4.5
    assert contrast(colours["quiet"], colours["d0"]) >= 4.5
    # Bars and the line under doubtful words are no text: 3 is asked for.
    assert contrast(colours["bar"], colours["ground"]) >= 3
    assert contrast(colours["edge"], colours["ground"]) >= 3


@pytest.mark.parametrize(("theme", "sign"), [("light", -1), ("dark", 1)])
def test_shades_differ_in_luminance_alone(theme, sign):
    # Whoever sees no colours, and a copy in grey, has the same order.
    shades = [luminance(themes()[theme][f"d{i}"]) for i in range(len(STEP_NAMES))]
    steps = [sign * (after - before) for before, after in zip(shades, shades[1:], strict=False)]
    assert min(steps) > 0
    assert themes()[theme]["d0"] == themes()[theme]["ground"]


@pytest.mark.parametrize(
    ("value", "step"),
    [
        (1.0, 0), (0.99, 0), (0.9896, 0), (0.9894, 1), (0.95, 1), (0.949, 2), (0.9, 2), (0.8994, 3), (0.75, 3), (0.5, 4),
        (0.4994, 5), (0.0, 5),
    ],
)  # fmt: skip
def test_steps(value, step):
    assert step_of(value) == step


def test_every_step_has_a_name_and_a_rule():
    assert len(STEP_NAMES) == len(SCORE_EDGES) + 1
    for i in range(len(STEP_NAMES)):
        assert f".cb-d{i} {{" in style()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 %"), (1.0, "100 %"), (1e-9, "<0.1 %"), (0.9999, ">99.9 %"), (0.5, "50.0 %"), (0.9994, "99.9 %"), (0.0005, "0.1 %"),
    ],
)  # fmt: skip
def test_percent(value, shown):
    assert percent(value) == shown


@given(score, score)
def test_a_higher_score_is_never_shaded_more(one, other):
    assert step_of(max(one, other)) <= step_of(min(one, other))


@given(st.lists(st.tuples(nasty, st.one_of(st.none(), score), nasty, st.sampled_from(["", " "])), max_size=6), st.booleans())
def test_text_stays_character_for_character(tokens, minify):
    words = [word(text, value, tag, space) for text, value, tag, space in tokens]
    page = Page(to_html([passage(*words)], DisplayOptions(tags="all"), minify=minify))
    assert page.texts == ["".join(text + space for text, _, _, space in tokens)]
    assert {tag for tag, _ in page.elements} <= {"style", "div", "p", "span"}


@given(st.text("ab<& ", min_size=1, max_size=12), st.data())
def test_text_with_crossing_marks_stays_too(text, data):
    place = st.integers(0, len(text))
    spans = data.draw(st.lists(st.tuples(place, place).filter(lambda span: span[0] < span[1]), max_size=5, unique=True))
    marks = [TextMark(start, end, f"L{i}<", 0.5, 0.6, None, ()) for i, (start, end) in enumerate(spans)]
    page = Page(to_html([MarkedText("en", "ltr", "", text=text, marks=marks)], DisplayOptions()))
    assert page.texts == [text]
    assert len(page.of_class("cb-chip")) == len(marks)
    pieces = nest_marks(marks)
    for piece in pieces:
        for other in pieces:
            inside = piece.start >= other.start and piece.end <= other.end
            around = piece.start <= other.start and piece.end >= other.end
            assert inside or around or piece.end <= other.start or other.end <= piece.start
    for mark in marks:
        covered = [i for piece in pieces if piece.mark is mark for i in range(piece.start, piece.end)]
        assert covered == list(range(mark.start, mark.end))


def test_markup_in_a_text_a_tag_or_a_title_is_text():
    one = passage(word(ATTACK, tag=ATTACK), title=ATTACK, lang='"><script>', direction='"><script>')
    marks = MarkedText("en", "ltr", "", text=ATTACK, marks=[TextMark(0, 5, ATTACK, 0.1, 0.2, True, ((ATTACK, ATTACK, 0.1),))])
    page = Page(to_html([one, marks], DisplayOptions(tags="all"), page=True))
    names = {tag for tag, _ in page.elements}
    assert not names & {"img", "script"}
    assert not any(name.startswith("on") for _, held in page.elements for name in held)
    assert page.texts == [f"{ATTACK} ", ATTACK]
    [tag] = page.of_class("cb-tag")
    assert tag["data-tag"] == ATTACK


def test_only_doubtful_words_are_stops_of_the_tab_key():
    sure, unsure, unknown = word("sure", 0.95), word("unsure", 0.6), word("unknown", None)
    page = Page(to_html([passage(sure, unsure, unknown)], DisplayOptions()))
    stops = [held for _, held in page.elements if "tabindex" in held]
    assert [(held["role"], held["aria-label"]) for held in stops] == [("note", "unsure: NN 60.0 %, VB 10.0 %, JJ 5.0 %")]
    assert len([held for _, held in page.elements if held.get("role") == "tooltip"]) == 2  # both have a hover
    everything = Page(to_html([passage(sure, unsure, unknown)], DisplayOptions(doubtful=0.96)))
    assert len([held for _, held in everything.elements if "tabindex" in held]) == 2


@pytest.mark.parametrize(("tags", "shown"), [("doubtful", ["VB"]), ("all", ["NN", "VB"]), ("none", [])])
def test_which_words_show_their_tag(tags, shown):
    words = (word("a", 0.95, "NN"), word("b", 0.6, "VB"), word("c", None))
    page = Page(to_html([passage(*words)], DisplayOptions(tags=tags)))
    assert [held["data-tag"] for held in page.of_class("cb-tag")] == shown


def test_the_tag_that_the_word_carries_comes_first_and_the_rest_is_cut():
    one = Word("duck", "", "NN", 0.4, 0.3, (("VB", 0.6), ("NN", 0.3), ("JJ", 0.05), ("UH", 0.02)))
    markup = to_html([passage(one)], DisplayOptions(alternatives=2, legend=False))
    assert re.findall(r'cb-name">(\w+)<', markup) == ["NN", "VB", "JJ"]
    assert "before calibration 40.0 %" in markup


def test_a_mark_says_its_cut_off_and_what_was_held_besides():
    mark = TextMark(4, 9, "LOC", 0.9, 0.4, False, (("Paris Hill", "PER", 0.3),))
    markup = to_html([MarkedText("en", "ltr", "", text="Old Paris Hill", marks=[mark])], DisplayOptions(legend=False))
    assert re.findall(r'cb-name">([^<]+)<', markup) == ["LOC", "PER (Paris Hill)"]
    assert "below its cut-off" in markup
    assert 'aria-label="Paris: LOC 40.0 %"' in markup


@pytest.mark.parametrize(("text", "side"), [("York", "cb-l"), ("שלום", "cb-r"), ("سلام", "cb-r"), ("3", ""), ("(x)", "cb-l")])
def test_a_tag_stays_beside_a_word_of_the_other_direction(text, side):
    page = Page(to_html([passage(word(text), direction="rtl", lang="he")], DisplayOptions()))
    assert [len(page.of_class(name)) for name in ("cb-l", "cb-r")] == [side == "cb-l", side == "cb-r"]
    assert page.of_class("cb-text")[0] == {"class": "cb-text", "lang": "he", "dir": "rtl"}


def test_white_space_is_neither_shaded_nor_reached():
    page = Page(to_html([passage(word("\n\n", 0.2, space=""))], DisplayOptions(legend=False)))
    assert page.texts == ["\n\n"]
    assert not page.of_class("cb-w")


def test_page_and_minify():
    whole = to_html([passage(word("a"), title="Two & two")], DisplayOptions(), page=True)
    assert whole.startswith("<!DOCTYPE html>\n<html")
    assert "<title>Two &amp; two</title>" in whole
    short = to_html([passage(word("a"))], DisplayOptions(), page=True, minify=True)
    assert "\n" not in short
    assert len(short) < len(whole)
    bare = to_html([], DisplayOptions(legend=False), minify=True)
    assert bare == f'<style>{style(True)}</style><div class="spacy-calib"></div>'


def test_nothing_is_loaded_from_elsewhere():
    whole = to_html([passage(word("a"))], DisplayOptions(), page=True)
    assert not re.search(r"https?:|url\(|@import|src=|href=|<script", whole)


def test_the_legend_can_be_left_out():
    assert "cb-legend" in re.sub("<style>.*?</style>", "", to_html([], DisplayOptions()), flags=re.S)
    assert "cb-legend" not in re.sub("<style>.*?</style>", "", to_html([], DisplayOptions(legend=False)), flags=re.S)
