"""Words or stretches of text with scores -> HTML without scripts: shaded by doubt, with alternatives on hover or tap."""

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

# A score below the first edge is shaded strongest, one at or above the last edge not at all.
SCORE_EDGES = (0.5, 0.75, 0.9, 0.95, 0.99)
STEP_NAMES = ("99 % and more", "95 to 99 %", "90 to 95 %", "75 to 90 %", "50 to 75 %", "under 50 %")
_HELP = "Rest on a marked word, tap it, or go to it with the tab key, to see what else it could be."


def escape(text: str) -> str:
    """Escape a text for HTML; control characters are made visible."""
    return html_escape(visible(text, keep="\n\t\r"))


class Word(NamedTuple):
    """A token to show: what follows it, tag or "", score before and after calibration, (tag, probability) of all its tags."""

    text: str
    space: str
    tag: str
    raw: float | None
    score: float | None
    scores: tuple[tuple[str, float], ...]


class Mark(NamedTuple):
    """A labelled stretch of a text: an entity, or a span of a span categorizer.

    start, end (int): Its characters. raw, score (float | None): Before and after calibration. accept (bool | None): Whether it
    reaches its cut-off. others (tuple): (text, label, probability) of its alternatives, best first; text "" for the stretch
    itself.
    """

    start: int
    end: int
    label: str
    raw: float | None
    score: float | None
    accept: bool | None
    others: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True)
class Passage:
    """One text to show: tokens, or a text with marks; language and direction ("ltr" or "rtl") as in HTML; heading or ""."""

    lang: str
    direction: str
    title: str
    words: Sequence[Word] = ()
    text: str = ""
    marks: Sequence[Mark] = ()


@dataclass(frozen=True)
class Look:
    """How passages are shown; the first four are options of `render`.

    doubtful (float): Tab and tap reach words with a lower score. tags (str): Which words show their tag: "doubtful", "all" or
    "none". alternatives (int): Maximum on hover. what (str): "tag", "category" or "entity", in the legend. beside (str):
    Description of `raw`. scores (bool): Whether elements carry their score for scripts.
    """

    doubtful: float = 0.9
    tags: str = "doubtful"
    alternatives: int = 5
    legend: bool = True
    what: str = "tag"
    beside: str = "before calibration"
    scores: bool = False

    def carried(self, score: float) -> str:
        """Return the score as an attribute."""
        return f' data-score="{round(score, 3):g}"' if self.scores else ""


def to_html(passages: Iterable[Passage], look: Look, page: bool = False, minify: bool = False) -> str:
    """Return style, legend and a <div> for each passage; with `page` an HTML document, with `minify` without extra space."""
    passage_list = list(passages)
    gap = "" if minify else "\n"
    blocks = [legend_html(look)] if look.legend else []
    blocks += [passage_html(passage, look) for passage in passage_list]
    body = gap.join([f"<style>{style(minify)}</style>", '<div class="spacy-calib">', *blocks, "</div>"])
    return _page(body, passage_list, gap) if page else body


def _page(body: str, passages: Sequence[Passage], gap: str) -> str:
    lang, direction = (passages[0].lang, passages[0].direction) if passages else ("en", "ltr")
    title = next((passage.title for passage in passages if passage.title), "spaCy: calibrated probabilities")
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
    """Return the style sheet of marked texts."""
    text = files(__package__).joinpath("marked_text.css").read_text(encoding="utf-8")
    return " ".join(text.split()) if minify else text


def step_of(score: float) -> int:
    """Return how strongly a score is shaded, 0 to 5; it is rounded as it is shown, so that shade and number agree."""
    return len(SCORE_EDGES) - bisect_right(SCORE_EDGES, round(score, 3))


def percent(score: float) -> str:
    """Format a probability to a tenth of a percent; "0 %" and "100 %" are exactly 0 and 1."""
    if 0 < score < 0.0005:
        return "<0.1 %"
    if 0.9995 <= score < 1:
        return ">99.9 %"
    return f"{100 * score:.1f} %" if 0 < score < 1 else f"{100 * score:.0f} %"


def legend_html(look: Look) -> str:
    """Explain the shades."""
    steps = " ".join(f'<span class="cb-w cb-d{i}">{name}</span>' for i, name in enumerate(STEP_NAMES))
    return (
        f'<div class="cb-legend" lang="en" dir="ltr"><p>Chance that the {look.what} is right: {steps} <span class="cb-none">no score</span></p>'
        f'<p class="cb-help">{_HELP}</p></div>'
    )


def passage_html(passage: Passage, look: Look) -> str:
    """Return one passage as a <div> in its own direction, with its text character for character."""
    title = f"<h2>{escape(passage.title)}</h2>" if passage.title else ""
    body = marks_html(passage.text, passage.marks, look) if passage.text else "".join(word_html(w, look) for w in passage.words)
    where = f'lang="{escape(passage.lang)}" dir="{escape(passage.direction)}"'
    return f'{title}<div class="cb-text" {where}>{body}</div>'


def word_html(word: Word, look: Look) -> str:
    """Return a word and the space after it; white space alone is left as it is."""
    text, space = escape(word.text), escape(word.space)
    if not word.text.strip():
        return text + space
    if word.score is None:
        return f'<span class="cb-none">{text}</span>{space}'
    doubtful = word.score < look.doubtful
    tag_text = word.tag if look.tags == "all" or (look.tags == "doubtful" and doubtful) else ""
    tag = _with_chip(word.text, f'<span class="cb-tag" data-tag="{escape(tag_text)}"></span>') if tag_text else ""
    assert word.score is not None
    alternatives = [(name, score) for name, score in word.scores if name != word.tag]
    rows = [(word.tag, word.score), *alternatives[: look.alternatives]]
    reach = _reach(f"{word.text}: " + ", ".join(f"{name} {percent(score)}" for name, score in rows)) if doubtful else ""
    tip = _tip(word.tag, rows, word.raw, look.beside)
    return f'<span class="cb-w cb-d{step_of(word.score)}"{look.carried(word.score)}{reach}>{text}{tag}{tip}</span>{space}'


def _with_chip(text: str, chip: str) -> str:
    """Keep a chip beside a text that runs against its paragraph (an English name in Hebrew), by an invisible direction mark."""
    strong = (bidirectional(character) for character in reversed(text))
    side = next((kind for kind in strong if kind in ("L", "R", "AL")), None)
    return f'<span class="{"cb-l" if side == "L" else "cb-r"}">{chip}</span>' if side else chip


def _reach(label: str) -> str:
    """Return attributes that let the tab key and a finger reach an element."""
    return f' tabindex="0" role="note" aria-label="{escape(label)}"'


def _tip(label: str, rows: Sequence[tuple[str, float]], raw: float | None, raw_label: str, extra: str = "") -> str:
    """Return what opens on hover and focus: a line and a bar for each alternative, the chosen one first."""
    lines = [
        f'<span class="cb-row{" cb-own" if name == label else ""}"><span class="cb-name">{escape(name)}</span>'
        f'<span class="cb-bar"><span style="width:{100 * score:.1f}%"></span></span><span class="cb-num">{escape(percent(score))}</span></span>'
        for name, score in rows
    ]
    raw_text = f'<span class="cb-more">{raw_label} {escape(percent(raw))}</span>' if raw is not None else ""
    return f'<span class="cb-tip" role="tooltip" dir="ltr">{"".join(lines)}{raw_text}{extra}</span>'


class _Piece(NamedTuple):
    """A part of a mark that crosses no other mark. last (bool): Whether it is the mark's last part."""

    start: int
    end: int
    mark: Mark
    last: bool


def nest_marks(marks: Iterable[Mark]) -> list[_Piece]:
    """Cut marks that cross, so that each piece lies inside of another or beside it; in opening order."""
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


def marks_html(text: str, marks: Iterable[Mark], look: Look) -> str:
    """Return the text with <mark> elements, nested where stretches overlap."""
    out: list[str] = []
    open_: list[_Piece] = []
    position = 0

    def close_until(place: int) -> None:
        nonlocal position
        while open_ and open_[-1].end <= place:
            piece = open_.pop()
            out.append(escape(text[position : piece.end]) + (_chip(text, piece.mark, look) if piece.last else "") + "</mark>")
            position = piece.end

    for piece in nest_marks(marks):
        close_until(piece.start)
        out.append(escape(text[position : piece.start]) + _mark_opening(text, piece, look))
        position = piece.start
        open_.append(piece)
    close_until(len(text))
    return "".join(out) + escape(text[position:])


def _mark_opening(text: str, piece: _Piece, look: Look) -> str:
    mark = piece.mark
    if mark.score is None:
        return '<mark class="cb-e cb-none">'
    label = f"{text[mark.start : mark.end]}: {mark.label} {percent(mark.score)}"
    reach = _reach(label) if mark.score < look.doubtful and piece.last else ""
    return f'<mark class="cb-e cb-d{step_of(mark.score)}"{look.carried(mark.score)}{reach}>'


def _chip(text: str, mark: Mark, look: Look) -> str:
    """Return the label after a stretch, its score, and what opens on hover."""
    stretch = text[mark.start : mark.end]
    if mark.score is None:
        return _with_chip(stretch, f'<span class="cb-chip" dir="ltr">{escape(mark.label)}</span>')
    accept = {True: "reaches its cut-off", False: "below its cut-off", None: ""}[mark.accept]
    note = f'<span class="cb-more">{accept}</span>' if accept else ""
    rows = [(mark.label, mark.score)]
    rows += [
        (f"{label} ({stretch_text})" if stretch_text else label, score)
        for stretch_text, label, score in mark.others[: look.alternatives]
    ]
    chip = f'<span class="cb-chip" dir="ltr">{escape(mark.label)} <b>{escape(percent(mark.score))}</b></span>'
    return _with_chip(stretch, chip) + _tip(mark.label, rows, mark.raw, look.beside, note)
