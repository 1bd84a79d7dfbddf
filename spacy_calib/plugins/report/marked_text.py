"""HTML without scripts of texts whose words or marks are shaded by score, with alternatives on hover or tap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape as html_escape
from importlib.resources import files
from typing import NamedTuple
from unicodedata import bidirectional

from ...errors.visible import visible

# Scores below the first edge have the darkest shade, scores from the last edge on have none.
SCORE_EDGES = (0.5, 0.75, 0.9, 0.95, 0.99)
STEP_NAMES = ("99 % and more", "95 to 99 %", "90 to 95 %", "75 to 90 %", "50 to 75 %", "under 50 %")
_HELP = "Hover over a marked word, tap it, or press the tab key to see its alternatives."


def escape(text: str) -> str:
    """Escape a text for HTML; control characters are made visible."""
    return html_escape(visible(text, keep="\n\t\r"))


class Word(NamedTuple):
    """A token to show."""

    text: str
    space: str  # white space after it
    tag: str  # predicted label, or ""
    raw: float | None  # score in the tip
    score: float | None  # score that decides the shade
    scores: tuple[tuple[str, float], ...]  # (tag, probability), highest first


class TextMark(NamedTuple):
    """A labelled span of a text, such as an entity.

    start, end (int): Its characters. raw, score (float | None): Score in the tip, and score that decides the shade. accept
    (bool | None): Whether it reaches its cut-off. alternatives (tuple): (text, label, probability), highest first; "" for the
    text of the mark.
    """

    start: int
    end: int
    label: str
    raw: float | None
    score: float | None
    accept: bool | None
    alternatives: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True)
class MarkedText:
    """A text to show: words, or a text with marks; language and direction ("ltr" or "rtl") as in HTML; heading or ""."""

    lang: str
    direction: str
    title: str
    words: Sequence[Word] = ()
    text: str = ""
    marks: Sequence[TextMark] = ()


@dataclass(frozen=True)
class DisplayOptions:
    """How texts are shown; the first four are options of `render`.

    doubtful (float): The tab key and taps reach words with a lower score. tags (str): Words that show their tag: "doubtful",
    "all" or "none". alternatives (int): Maximum number on hover. legend (bool): Whether there is a legend. label_word (str):
    "tag", "category" or "entity", in the legend.
    raw_caption (str): Description of the score in the tip. scores (bool): Whether elements have their score as an attribute,
    for scripts.
    """

    doubtful: float = 0.9
    tags: str = "doubtful"
    alternatives: int = 5
    legend: bool = True
    label_word: str = "tag"
    raw_caption: str = "before calibration"
    scores: bool = False

    def score_attribute(self, score: float) -> str:
        """Return the HTML attribute with a score; "" without `scores`."""
        return f' data-score="{round(score, 3):g}"' if self.scores else ""


def to_html(texts: Iterable[MarkedText], options: DisplayOptions, page: bool = False, minify: bool = False) -> str:
    """Return style, legend and a <div> for each text; with `page` an HTML document, with `minify` without extra space."""
    text_list = list(texts)
    gap = "" if minify else "\n"
    blocks = [legend_html(options)] if options.legend else []
    blocks += [text_html(text, options) for text in text_list]
    body = gap.join([f"<style>{style(minify)}</style>", '<div class="spacy-calib">', *blocks, "</div>"])
    return _page(body, text_list, gap) if page else body


def _page(body: str, texts: Sequence[MarkedText], gap: str) -> str:
    lang, direction = (texts[0].lang, texts[0].direction) if texts else ("en", "ltr")
    title = next((text.title for text in texts if text.title), "spaCy: calibrated probabilities")
    return gap.join(
        [
            "<!DOCTYPE html>",
            f'<html lang="{escape(lang)}" dir="{escape(direction)}">',
            '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title></head>",
            f'<body class="spacy-calib-page"><main>{gap}{body}{gap}</main></body></html>',
        ]
    )


@cache
def style(minify: bool = False) -> str:
    text = files(__package__).joinpath("marked_text.css").read_text(encoding="utf-8")
    return " ".join(text.split()) if minify else text


def step_of(score: float) -> int:
    """Return the shade of a score, 0 to 5; it is rounded as its number is, so that both agree."""
    return len(SCORE_EDGES) - bisect_right(SCORE_EDGES, round(score, 3))


def percent(score: float) -> str:
    """Format a probability to a tenth of a percent; "0 %" and "100 %" are exactly 0 and 1."""
    if 0 < score < 0.0005:
        return "<0.1 %"
    if 0.9995 <= score < 1:
        return ">99.9 %"
    return f"{100 * score:.1f} %" if 0 < score < 1 else f"{100 * score:.0f} %"


def legend_html(options: DisplayOptions) -> str:
    """Return the legend: the shades with their ranges of scores, and how to see alternatives."""
    steps = " ".join(f'<span class="cb-w cb-d{i}">{name}</span>' for i, name in enumerate(STEP_NAMES))
    return (
        f'<div class="cb-legend" lang="en" dir="ltr"><p>Probability that the {options.label_word} is right: {steps} <span class="cb-none">no score</span></p>'
        f'<p class="cb-help">{_HELP}</p></div>'
    )


def text_html(text: MarkedText, options: DisplayOptions) -> str:
    """Return one text as a <div> with its own direction; no character of the text is changed."""
    title = f"<h2>{escape(text.title)}</h2>" if text.title else ""
    words = (word_html(word, options) for word in text.words)
    body = marks_html(text.text, text.marks, options) if text.text else "".join(words)
    attributes = f'lang="{escape(text.lang)}" dir="{escape(text.direction)}"'
    return f'{title}<div class="cb-text" {attributes}>{body}</div>'


def word_html(word: Word, options: DisplayOptions) -> str:
    """Return a word and the white space after it; a word of white space is left as it is."""
    text, space = escape(word.text), escape(word.space)
    if not word.text.strip():
        return text + space
    if word.score is None:
        return f'<span class="cb-none">{text}</span>{space}'
    doubtful = word.score < options.doubtful
    tag_text = word.tag if options.tags == "all" or (options.tags == "doubtful" and doubtful) else ""
    tag = _with_chip(word.text, f'<span class="cb-tag" data-tag="{escape(tag_text)}"></span>') if tag_text else ""
    assert word.score is not None
    alternatives = [(name, score) for name, score in word.scores if name != word.tag]
    rows = [(word.tag, word.score), *alternatives[: options.alternatives]]
    reach = _reach(f"{word.text}: " + ", ".join(f"{name} {percent(score)}" for name, score in rows)) if doubtful else ""
    tip = _tip(word.tag, rows, word.raw, options.raw_caption)
    return f'<span class="cb-w cb-d{step_of(word.score)}"{options.score_attribute(word.score)}{reach}>{text}{tag}{tip}</span>{space}'


def _with_chip(text: str, chip: str) -> str:
    """Return a chip that stays next to its text if that runs against the paragraph (an English name in Hebrew)."""
    strong = (bidirectional(character) for character in reversed(text))
    side = next((kind for kind in strong if kind in ("L", "R", "AL")), None)
    return f'<span class="{"cb-l" if side == "L" else "cb-r"}">{chip}</span>' if side else chip


def _reach(label: str) -> str:
    """Return HTML attributes that make an element reachable by tab key and tap. label (str): For screen readers."""
    return f' tabindex="0" role="note" aria-label="{escape(label)}"'


def _tip(label: str, rows: Sequence[tuple[str, float]], raw: float | None, raw_label: str, extra: str = "") -> str:
    """Return the tip that opens on hover and focus: a line with a bar for each of `rows`, (name, score), then the raw score."""
    lines = [
        f'<span class="cb-row{" cb-own" if name == label else ""}"><span class="cb-name">{escape(name)}</span>'
        f'<span class="cb-bar"><span style="width:{100 * score:.1f}%"></span></span><span class="cb-num">{escape(percent(score))}</span></span>'
        for name, score in rows
    ]
    raw_text = f'<span class="cb-more">{raw_label} {escape(percent(raw))}</span>' if raw is not None else ""
    return f'<span class="cb-tip" role="tooltip" dir="ltr">{"".join(lines)}{raw_text}{extra}</span>'


class _Piece(NamedTuple):
    """A part of a mark that crosses no other mark. last (bool): Whether it is the last part of the mark."""

    start: int
    end: int
    mark: TextMark
    last: bool


def nest_marks(marks: Iterable[TextMark]) -> list[_Piece]:
    """Cut marks so that any two pieces are nested or disjoint; pieces are in order of their start."""
    waiting = sorted((_Piece(mark.start, mark.end, mark, True) for mark in marks), key=_opening, reverse=True)
    pieces: list[_Piece] = []
    ends: list[int] = []
    while waiting:
        piece = waiting.pop()
        while ends and ends[-1] <= piece.start:
            ends.pop()
        if ends and ends[-1] < piece.end:
            waiting.append(piece._replace(start=ends[-1]))
            waiting.sort(key=_opening, reverse=True)
            piece = piece._replace(end=ends[-1], last=False)
        pieces.append(piece)
        ends.append(piece.end)
    return pieces


def _opening(piece: _Piece) -> tuple[int, int]:
    return piece.start, -piece.end


def marks_html(text: str, marks: Iterable[TextMark], options: DisplayOptions) -> str:
    """Return the text with <mark> elements, nested if marks overlap."""
    out: list[str] = []
    open_: list[_Piece] = []
    position = 0

    def close_until(index: int) -> None:
        nonlocal position
        while open_ and open_[-1].end <= index:
            piece = open_.pop()
            out.append(
                escape(text[position : piece.end]) + (_chip(text, piece.mark, options) if piece.last else "") + "</mark>"
            )
            position = piece.end

    for piece in nest_marks(marks):
        close_until(piece.start)
        out.append(escape(text[position : piece.start]) + _mark_opening(text, piece, options))
        position = piece.start
        open_.append(piece)
    close_until(len(text))
    return "".join(out) + escape(text[position:])


def _mark_opening(text: str, piece: _Piece, options: DisplayOptions) -> str:
    mark = piece.mark
    if mark.score is None:
        return '<mark class="cb-e cb-none">'
    label = f"{text[mark.start : mark.end]}: {mark.label} {percent(mark.score)}"
    reach = _reach(label) if mark.score < options.doubtful and piece.last else ""
    return f'<mark class="cb-e cb-d{step_of(mark.score)}"{options.score_attribute(mark.score)}{reach}>'


def _chip(text: str, mark: TextMark, options: DisplayOptions) -> str:
    """Return the label after a mark, with its score and its tip."""
    mark_text = text[mark.start : mark.end]
    if mark.score is None:
        return _with_chip(mark_text, f'<span class="cb-chip" dir="ltr">{escape(mark.label)}</span>')
    accept = {True: "reaches its cut-off", False: "below its cut-off", None: ""}[mark.accept]
    note = f'<span class="cb-more">{accept}</span>' if accept else ""
    rows = [(mark.label, mark.score)]
    rows += [
        (f"{label} ({other_text})" if other_text else label, score)
        for other_text, label, score in mark.alternatives[: options.alternatives]
    ]
    chip = f'<span class="cb-chip" dir="ltr">{escape(mark.label)} <b>{escape(percent(mark.score))}</b></span>'
    return _with_chip(mark_text, chip) + _tip(mark.label, rows, mark.raw, options.raw_caption, note)
