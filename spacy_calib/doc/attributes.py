"""The extension attributes that users read. Their getters look up the scores that calib pipes stored on the Doc (see `store`).

A getter returns None if no stored score belongs to the token, span or Doc as it is now.

Token._.<attr>_score, _raw, _scores, _flag; Span._.<attr>_score, _raw, _accept, _link, _links;
Doc._.<attr>; for categories Doc._.<attr>_score, _raw, _cats, _cats_raw, _accept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from keyword import iskeyword
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.tokens.underscore import Underscore

from ..errors import CalibError, calib_error
from .doc_calib import doc_view
from .store import SpanValues, TokenValues, document_block, find_row, find_span, has_labelled_spans, link_values, row_of_span

# Default prefix of a pipe, and of a pipe of entities: one pipeline can have both.
DEFAULT_ATTR, ENTITY_ATTR = "calib", "calib_ent"

# Names that `Language.to_disk` and `to_bytes` use for something other than a pipe.
_SAVED_NAMES = ("config.cfg", "meta.json", "tokenizer", "vocab")
_UNDERSCORE_NAMES = frozenset(dir(Underscore))
_LANGUAGE_NAMES = frozenset(dir(Language)) | set(_SAVED_NAMES)


def check_attr(attr: str) -> str:
    """Return `attr`, a prefix of attributes, if valid. RAISES C001: no Python identifier. C112: a keyword, or spaCy's name."""
    if not isinstance(attr, str) or not attr.isidentifier():
        raise calib_error("C001", name="attr", wanted="a Python identifier", given=repr(attr))
    reason = ""
    if iskeyword(attr):
        reason = "it is a keyword of Python"
    elif attr.startswith("_"):
        reason = "names that begin with '_' are for spaCy itself"
    elif attr in _UNDERSCORE_NAMES:
        reason = f"spaCy has Doc._.{attr} already"
    elif attr in _LANGUAGE_NAMES:
        reason = f"spaCy has nlp.{attr} already"
    if reason:
        raise calib_error("C112", attr=attr, why=reason)
    return attr


def check_pipe_name(name: str) -> str:
    """Return the name of a pipe if it is valid. RAISES C113: a pipeline with such a pipe cannot be saved or loaded."""
    reason = ""
    if name.lower() in _SAVED_NAMES:
        reason = "saved pipelines use this name for something else"
    elif not name.strip(".") or set(name) & set("/\\\0"):
        reason = "it is not a valid folder name"
    if reason:
        raise calib_error("C113", name=name, why=reason)
    return name


def token_values(token: Token, attr: str) -> TokenValues | None:
    """Return the raw and calibrated probability of the token's current label; None if it has no label or the label no score.

    attr: The pipe's prefix. A label has no score if the model lacks it, or if it was set later and is below the threshold.
    """
    block, row = find_row(token, attr) or (None, 0)
    return None if block is None else block.values_of(row, block.annotation.label(token))


def token_score(token: Token, attr: str, column: str = "calibrated") -> float | None:
    """Token._.<attr>_score, or _raw (column "raw"): probability that the token's label is right; None if unknown or hidden."""
    block, row = find_row(token, attr) or (None, 0)
    if block is None or "is_hidden" in block:
        return None
    entry = block.entry_of(row, block.annotation.label(token))
    return None if entry is None else block.columns[column][entry]


def token_flag(token: Token, attr: str) -> bool | None:
    """Token._.<attr>_flag: whether the token needs review since it may be part of an entity; None without cut-offs.

    Reviewing all flagged tokens misses no more entities than allowed (`spacy calib threshold --recall`).
    """
    block, row = find_row(token, attr) or (None, 0)
    return None if block is None else block.flag_of(row, "flag")


def token_scores(token: Token, attr: str, raw: bool = False, hidden: bool = True) -> dict[str, float] | None:
    """Return label -> calibrated (or raw) probability of a token's labels above the threshold; None without scores.

    The highest calibrated score comes first. attr (str): Prefix of the pipe. hidden (bool): Whether to return also what a pipe
    with token_scores=False stores but hides.
    """
    block, row = find_row(token, attr) or (None, 0)
    return None if block is None or ("is_hidden" in block and not hidden) else block.scores_of(row, raw)


def span_values(span: Span, attr: str) -> SpanValues | None:
    """Return the scores (prefix `attr`) of a span, else of its `kb_id_`; None without any, or if its text or labels changed."""
    values = find_span(span, attr) if len(span) else None
    return values if values is not None and values.on_doc else link_values(span, attr)  # not on_doc: a mere candidate


def shown_values(span: Span, attr: str) -> SpanValues | None:
    """Return a span's scores of prefix `attr`, or None. DEFAULT_ATTR reads ENTITY_ATTR if it scored no labelled spans here."""
    values = span_values(span, attr)
    if values is not None or attr != DEFAULT_ATTR or has_labelled_spans(span.doc, attr):
        return values
    return span_values(span, ENTITY_ATTR)


def span_accept(span: Span, attr: str) -> bool | None:
    """Span._.<attr>_accept: whether the span's score reaches its cut-off (`spacy calib threshold`); None without one."""
    values = shown_values(span, attr)
    return None if values is None else values.is_accepted


def span_links(span: Span, attr: str) -> dict[str, float] | None:
    """Span._.<attr>_links: identity (or "NIL") -> calibrated probability, of those above the threshold; None without any."""
    block, row = row_of_span(span, attr) or (None, 0)
    return None if block is None else block.scores_of(row) or None


def doc_values(doc: Doc, attr: str) -> TokenValues | None:
    """Return raw and calibrated probability (prefix `attr`) of the current top category of `doc.cats`; None without a score."""
    block = document_block(doc, attr)
    if block is None:
        return None
    top_category = block.annotation.label_at(doc, 0)
    return block.values_of(0, top_category) if top_category else None  # 0: the only row of such a block


def doc_cats(doc: Doc, attr: str, raw: bool = False) -> dict[str, float] | None:
    """Doc._.<attr>_cats: category -> calibrated probability above the threshold, highest first; None without scores.

    raw (bool): Whether to return raw probabilities, in the same order (Doc._.<attr>_cats_raw).
    """
    block = document_block(doc, attr)
    return None if block is None else block.scores_of(0, raw)


doc_cats_raw = partial(doc_cats, raw=True)  # Doc._.<attr>_cats_raw: the same with raw probabilities


def doc_accept(doc: Doc, attr: str) -> bool | None:
    """Doc._.<attr>_accept: whether the top category reaches its cut-off; None without one, or if the top one has changed."""
    block = document_block(doc, attr)
    if block is None or not block.had_label(0, block.annotation.label_at(doc, 0)):
        return None
    return block.flag_of(0, "accept")


def _value_of(find: Callable[[Any, str], Any], name: str, owner: Any, attr: str) -> Any:
    """Find the scores of a token, span or Doc by `find(owner, attr)`; return their field `name`, or None without scores."""
    values = find(owner, attr)
    return None if values is None else getattr(values, name)


# Owner -> suffix of the attribute -> its getter.
_GETTERS: dict[Any, dict[str, Any]] = {
    Token: {
        "score": token_score,  # calibrated probability that the current label is right
        "raw": partial(token_score, column="raw"),
        "scores": partial(token_scores, hidden=False),  # tag -> calibrated probability, of those above the threshold
        "flag": token_flag,
    },
    Span: {
        "score": partial(_value_of, shown_values, "calibrated"),  # probability that the span is right, by the event of the fit
        "raw": partial(_value_of, shown_values, "raw"),
        "accept": span_accept,
        "link": partial(_value_of, link_values, "calibrated"),  # probability that the entity's current identity is right
        "links": span_links,
    },
    Doc: {
        "score": partial(_value_of, doc_values, "calibrated"),  # of the top category in `doc.cats`
        "raw": partial(_value_of, doc_values, "raw"),
        "cats": doc_cats,
        "cats_raw": doc_cats_raw,
        "accept": doc_accept,
    },
}


def register(attr: str = DEFAULT_ATTR) -> None:
    """Register the attributes of a prefix in this process; registering it twice is harmless.

    RAISES C001: `attr` is no identifier. C112: a keyword, or a name of spaCy. C025: another extension has one of the names.

        >>> from spacy.tokens import Token
        >>> register("second")
        >>> Token.has_extension("second_score")
        True
    """
    check_attr(attr)
    extensions: list[tuple[Any, str, Any]] = [(Doc, attr, doc_view)]
    for owner, getters in _GETTERS.items():
        extensions += [(owner, f"{attr}_{suffix}", getter) for suffix, getter in getters.items()]
    for owner, name, getter in extensions:
        if owner.has_extension(name) and not _is_ours(owner.get_extension(name)[2], getter, attr):
            raise calib_error("C025", attr=attr, owner=f"the extension {owner.__name__}._.{name}")
    for owner, name, getter in extensions:
        if not owner.has_extension(name):
            owner.set_extension(name, getter=partial(getter, attr=attr))


def register_score_name(name: str, attr: str) -> None:
    """Register Token._.<name> and Span._.<name>, which read <attr>_score. RAISES C001: no identifier. C289: it is in use."""
    if not name.isidentifier():
        raise calib_error("C001", name="score_name", wanted="a Python identifier", given=repr(name))
    for owner in (Token, Span):
        getter = _GETTERS[owner]["score"]
        if owner.has_extension(name) and not _is_ours(owner.get_extension(name)[2], getter, attr):
            raise calib_error("C289", name=name, owner=f"the extension {owner.__name__}._.{name}")
        owner.set_extension(name, getter=partial(getter, attr=attr), force=True)


def is_calibrated(owner: Any, name: str) -> bool:
    """Return whether extension `name` of Doc, Span or Token was registered here: a source must not read it as raw scores."""
    getter = owner.get_extension(name)[2]
    return isinstance(getter, partial) and getter.func.__module__ == __name__


def _is_ours(getter: Any, function: Any, attr: str) -> bool:
    """Return whether the getter of an extension is the one that `register` makes from `function` and the prefix `attr`."""
    ours = partial(function, attr=attr)  # two partials are not equal, but their parts are
    parts = (getter.func, getter.args, getter.keywords) if isinstance(getter, partial) else ()
    return parts == (ours.func, ours.args, ours.keywords)


def register_default() -> None:
    """Register the attributes of both default prefixes, except a prefix in use: importing this package must not fail."""
    for attr in (DEFAULT_ATTR, ENTITY_ATTR):
        with contextlib.suppress(CalibError):
            register(attr)


register_default()
