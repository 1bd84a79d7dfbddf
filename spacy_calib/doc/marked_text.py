"""Words or stretches of text with scores -> HTML without scripts: shaded by doubt, alternatives on hover or tap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape as html_escape
from importlib.resources import files
from typing import NamedTuple
from unicodedata import bidirectional

from ..corpus.visible import visible

# A score below the first edge is shaded strongest, one at or above the last edge not at all.
SCORE_EDGES = (0.5, 0.75, 0.9, 0.95, 0.99)
STEP_NAMES = ("99 % and more", "95 to 99 %", "90 to 95 %", "75 to 90 %", "50 to 75 %", "under 50 %")
_HELP = "Rest on a marked word, tap it, or go to it with the tab key, to see what else it could be."


def escape(text: str) -> str:
    """A text as HTML may hold it; control characters are made visible."""
    return html_escape(visible(text, keep="\n\t\r"))


class Word(NamedTuple):
    """A token to show.

    text (str): Its characters. space (str): What stands between it and the next token. tag (str): Its tag; "" for none.
    raw, score (float | None): Probability of the tag before and after calibration; None without a score.
    scores (tuple): (tag, calibrated probability) of all its possible tags, highest first.
    """

    text: str
    space: str
    tag: str
    raw: float | None
    score: float | None
    scores: tuple[tuple[str, float], ...]


class Mark(NamedTuple):
    """A labelled stretch of a text: an entity, or a span of a span categorizer.

    start, end (int): Its first character, and the one after the last. label (str): What it is marked as.
    raw, score (float | None): Probability that it is right, before and after calibration; None without a score.
    accept (bool | None): Whether it reaches its cut-off; None without cut-offs.
    others (tuple): (text, label, probability) of its alternatives, likeliest first: stretches that a recognizer's beam
        did not choose, else what its single words could be; text "" for the stretch itself.
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
    """One text to show: as tokens (`words`), or as a text with stretches marked in it (`text` and `marks`).

    lang, direction (str): As HTML names them, direction "ltr" or "rtl". title (str): The heading; "" for none.
    """

    lang: str
    direction: str
    title: str
    words: Sequence[Word] = ()
    text: str = ""
    marks: Sequence[Mark] = ()


@dataclass(frozen=True)
class Look:
    """How passages are shown; the first four are options of `render`.

    doubtful (float): Tab and tap reach words with a lower score. tags (str): Which words show their tag: "doubtful",
        "all" or "none". alternatives (int): Most alternatives shown on hover. legend (bool): Whether the shades are
        explained above the text. what (str): What is right or wrong, in the legend: "tag", "category" or "entity".
    beside (str): When the `raw` of words and marks was. scores (bool): Whether elements carry their score for scripts.
    """

    doubtful: float = 0.9
    tags: str = "doubtful"
    alternatives: int = 5
    legend: bool = True
    what: str = "tag"
    beside: str = "before calibration"
    scores: bool = False

    def carried(self, score: float) -> str:
        """The score as it is shown, as an attribute."""
        return f' data-score="{round(score, 3):g}"' if self.scores else ""


def to_html(passages: Iterable[Passage], look: Look, page: bool = False, minify: bool = False) -> str:
    """The whole markup: a <style>, the legend, a <div> for each passage; with `page` an HTML document.

    minify (bool): Leave out the white space that is not text.
    """
    held = list(passages)
    gap = "" if minify else "\n"
    blocks = [legend_html(look)] if look.legend else []
    blocks += [passage_html(passage, look) for passage in held]
    body = gap.join([f"<style>{style(minify)}</style>", '<div class="spacy-calib">', *blocks, "</div>"])
    return _page(body, held, gap) if page else body


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
    """The style sheet of marked texts."""
    text = files(__package__).joinpath("marked_text.css").read_text(encoding="utf-8")
    return " ".join(text.split()) if minify else text


def step_of(score: float) -> int:
    """How strongly a score is shaded, 0 (not at all) to 5; rounded as it is shown, so that shade and number agree."""
    return len(SCORE_EDGES) - bisect_right(SCORE_EDGES, round(score, 3))


def percent(score: float) -> str:
    """A probability to a tenth of a percent; "0 %" and "100 %" are exactly 0 and 1."""
    if 0 < score < 0.0005:
        return "<0.1 %"
    if 0.9995 <= score < 1:
        return ">99.9 %"
    return f"{100 * score:.1f} %" if 0 < score < 1 else f"{100 * score:.0f} %"


def legend_html(look: Look) -> str:
    """What the shades mean."""
    steps = " ".join(f'<span class="cb-w cb-d{i}">{name}</span>' for i, name in enumerate(STEP_NAMES))
    return (
        f'<div class="cb-legend" lang="en" dir="ltr"><p>Chance that the {look.what} is right: {steps} <span class="cb-none">no score</span></p>'
        f'<p class="cb-help">{_HELP}</p></div>'
    )


def passage_html(passage: Passage, look: Look) -> str:
    """One passage as a <div> in its own direction, with its text character for character."""
    title = f"<h2>{escape(passage.title)}</h2>" if passage.title else ""
    body = marks_html(passage.text, passage.marks, look) if passage.text else "".join(word_html(w, look) for w in passage.words)
    where = f'lang="{escape(passage.lang)}" dir="{escape(passage.direction)}"'
    return f'{title}<div class="cb-text" {where}>{body}</div>'


def word_html(word: Word, look: Look) -> str:
    """A word and the space after it; white space alone is left as it is."""
    text, space = escape(word.text), escape(word.space)
    if not word.text.strip():
        return text + space
    if word.score is None:
        return f'<span class="cb-none">{text}</span>{space}'
    doubtful = word.score < look.doubtful
    shown = word.tag if look.tags == "all" or (look.tags == "doubtful" and doubtful) else ""
    tag = _beside(word.text, f'<span class="cb-tag" data-tag="{escape(shown)}"></span>') if shown else ""
    rows = _alternatives(word, look)
    reach = _reach(f"{word.text}: " + ", ".join(f"{name} {percent(score)}" for name, score in rows)) if doubtful else ""
    tip = _tip(word.tag, rows, word.raw, look.beside)
    return f'<span class="cb-w cb-d{step_of(word.score)}"{look.carried(word.score)}{reach}>{text}{tag}{tip}</span>{space}'


def _beside(text: str, chip: str) -> str:
    """A chip that stays beside a text that runs against its paragraph (an English name in Hebrew): the style sheet puts
    an invisible mark of the text's direction behind it.
    """
    strong = (bidirectional(character) for character in reversed(text))
    side = next((kind for kind in strong if kind in ("L", "R", "AL")), None)
    return f'<span class="{"cb-l" if side == "L" else "cb-r"}">{chip}</span>' if side else chip


def _alternatives(word: Word, look: Look) -> list[tuple[str, float]]:
    """The tag that the word carries, then the others."""
    assert word.score is not None
    others = [(name, score) for name, score in word.scores if name != word.tag]
    return [(word.tag, word.score), *others[: look.alternatives]]


def _reach(label: str) -> str:
    """Attributes that let the tab key and a finger reach an element, and that say what it holds."""
    return f' tabindex="0" role="note" aria-label="{escape(label)}"'


def _tip(own: str, rows: Sequence[tuple[str, float]], raw: float | None, beside: str, more: str = "") -> str:
    """What opens on hover and focus: a line and a bar for each alternative, the chosen one first."""
    lines = [
        f'<span class="cb-row{" cb-own" if name == own else ""}"><span class="cb-name">{escape(name)}</span>'
        f'<span class="cb-bar"><span style="width:{100 * score:.1f}%"></span></span><span class="cb-num">{escape(percent(score))}</span></span>'
        for name, score in rows
    ]
    before = f'<span class="cb-more">{beside} {escape(percent(raw))}</span>' if raw is not None else ""
    return f'<span class="cb-tip" role="tooltip" dir="ltr">{"".join(lines)}{before}{more}</span>'


class _Piece(NamedTuple):
    """A part of a mark that crosses no other mark. last (bool): Whether it is the mark's last part."""

    start: int
    end: int
    mark: Mark
    last: bool


def nested(marks: Iterable[Mark]) -> list[_Piece]:
    """Cut marks that cross so that each piece lies inside of another or beside it; in the order in which they open."""
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
    """The text with <mark> elements, one in another where stretches overlap."""
    out: list[str] = []
    open_: list[_Piece] = []
    at = 0

    def close_until(place: int) -> None:
        nonlocal at
        while open_ and open_[-1].end <= place:
            piece = open_.pop()
            out.append(escape(text[at : piece.end]) + (_chip(text, piece.mark, look) if piece.last else "") + "</mark>")
            at = piece.end

    for piece in nested(marks):
        close_until(piece.start)
        out.append(escape(text[at : piece.start]) + _mark_opening(text, piece, look))
        at = piece.start
        open_.append(piece)
    close_until(len(text))
    return "".join(out) + escape(text[at:])


def _mark_opening(text: str, piece: _Piece, look: Look) -> str:
    mark = piece.mark
    if mark.score is None:
        return '<mark class="cb-e cb-none">'
    label = f"{text[mark.start : mark.end]}: {mark.label} {percent(mark.score)}"
    reach = _reach(label) if mark.score < look.doubtful and piece.last else ""
    return f'<mark class="cb-e cb-d{step_of(mark.score)}"{look.carried(mark.score)}{reach}>'


def _chip(text: str, mark: Mark, look: Look) -> str:
    """The label behind a stretch, its score, and what opens on hover."""
    held = text[mark.start : mark.end]
    if mark.score is None:
        return _beside(held, f'<span class="cb-chip" dir="ltr">{escape(mark.label)}</span>')
    accept = {True: "reaches its cut-off", False: "below its cut-off", None: ""}[mark.accept]
    more = f'<span class="cb-more">{accept}</span>' if accept else ""
    rows = [(mark.label, mark.score)]
    rows += [(f"{label} ({other})" if other else label, score) for other, label, score in mark.others[: look.alternatives]]
    chip = f'<span class="cb-chip" dir="ltr">{escape(mark.label)} <b>{escape(percent(mark.score))}</b></span>'
    return _beside(held, chip) + _tip(mark.label, rows, mark.raw, look.beside, more)
