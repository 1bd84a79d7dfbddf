"""The attributes that users read. Each is a getter: it looks into the blocks that calib pipes wrote on the Doc (see
`blocks`), and gives None where these do not, or no longer, belong to the token or span that is asked about.

Token._.<attr>_score, _raw, _scores, _set, _flag; Span._.<attr>_score, _raw, _accept, _link, _links, _right;
Doc._.<attr>; for categories Doc._.<attr>_score, _raw, _cats, _cats_raw, _set, _accept.
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
from ..pairs.documents import TOKEN
from .block import Block, SpanValues, TokenValues
from .rows import document_block, find_row, find_span, has_labelled_spans, link_values, row_of_span
from .view import doc_view

# The prefix of a pipe, and that of a pipe of entities, so that one pipeline can have both.
DEFAULT_ATTR, ENTITY_ATTR = "calib", "calib_ent"
# Scores of whole units stand in blocks with this behind the prefix of the calib pipe that they are made from.
RIGHT = "_right"

# What `Language.to_disk` and `to_bytes` write beside the pipes, under these names.
_BESIDE_PIPES = ("config.cfg", "meta.json", "tokenizer", "vocab")
_OF_UNDERSCORE = frozenset(dir(Underscore))
_OF_LANGUAGE = frozenset(dir(Language)) | set(_BESIDE_PIPES)


def check_attr(attr: str) -> str:
    """The prefix, as it is. RAISES C001: no Python identifier. C112: not readable as `Doc._.<attr>`, or spaCy's own."""
    if not isinstance(attr, str) or not attr.isidentifier():
        raise calib_error("C001", name="attr", wanted="a Python identifier", given=repr(attr))
    why = ""
    if iskeyword(attr):
        why = "it is a keyword of Python"
    elif attr.startswith("_"):
        why = "names that begin with '_' are for spaCy itself"
    elif attr in _OF_UNDERSCORE:
        why = f"spaCy has Doc._.{attr} already"
    elif attr in _OF_LANGUAGE:
        why = f"spaCy has nlp.{attr} already"
    if why:
        raise calib_error("C112", attr=attr, why=why)
    return attr


def check_pipe_name(name: str) -> str:
    """The name, as it is. RAISES C113: a pipeline with such a pipe cannot be saved, or not loaded again."""
    why = ""
    if name.lower() in _BESIDE_PIPES:
        why = "a saved pipeline has something else of this name"
    elif not name.strip(".") or set(name) & set("/\\\0"):
        why = "it is no name for a folder"
    if why:
        raise calib_error("C113", name=name, why=why)
    return name


# Tokens


def shown_row(token: Token, attr: str) -> tuple[Block, int] | None:
    """`find_row`; None for tokens of a pipe of entities that gives tokens no scores (see `PipeSettings.token_scores`)."""
    row = find_row(token, attr)
    return row if row is not None and row[0].token_scores else None


def token_values(
    token: Token, attr: str, find: Callable[[Token, str], tuple[Block, int] | None] = find_row
) -> TokenValues | None:
    """The values of the label that the token now carries.

    find (Callable): `find_row` or `shown_row`.
    RETURNS: None where it carries no label, where the label has no value (the model does not know it, or it was set
        after the pipe ran and its raw score is below the threshold), and where no row of a block belongs to the token.
    """
    match = find(token, attr)
    if match is None:
        return None
    block, row = match
    label = block.annotation.label(token)
    return block.values_of(row, label) if label else None


def token_score(token: Token, attr: str) -> float | None:
    """Token._.<attr>_score: calibrated probability that the label the token now carries is right, in [0, 1]."""
    match = shown_row(token, attr)
    if match is None:
        return None
    block, row = match
    entry = block.entry_of(row, block.annotation.label(token))
    return None if entry is None else block.calibrated[entry]


def token_set(token: Token, attr: str) -> tuple[str, ...] | None:
    """Token._.<attr>_set: tags that hold the right one as often as the pipe's `sets` promise, likeliest first.

    RETURNS: None where the pipe makes no sets, the token has no values, or only the set of all tags keeps the promise.
    """
    match = find_row(token, attr)
    return None if match is None else match[0].set_of(match[1])


def token_flag(token: Token, attr: str) -> bool | None:
    """Token._.<attr>_flag: whether the token, even one that got O, may be inside an entity and must be looked at, so
    that no more entities are missed than was asked for (`spacy calib threshold --recall`).

    RETURNS: None where the pipe has no such cut-offs, and where the token has no values.
    """
    match = find_row(token, attr)
    flag = -1 if match is None or match[0].flag is None else match[0].flag[match[1]]
    return None if flag < 0 else bool(flag)


def token_scores(
    token: Token, attr: str, raw: bool = False, find: Callable[[Token, str], tuple[Block, int] | None] = find_row
) -> dict[str, float] | None:
    """Token._.<attr>_scores: tag -> calibrated probability above the threshold, highest first; None without values.

    raw (bool): In the same order the probabilities before calibration. find (Callable): `find_row` or `shown_row`.
    """
    match = find(token, attr)
    return None if match is None else (match[0].raw_of if raw else match[0].scores_of)(match[1])


# Spans and documents


def span_values(span: Span, attr: str) -> SpanValues | None:
    """What the pipe wrote of a span that stood on the Doc when it ran. None for any other span, and where its text has
    changed since or, if the probability is of its tokens' labels, one of these. Of an entity of a pipe that calibrates links, see `link_values`."""
    match = find_span(span, attr) if len(span) else None
    return match if match is not None and match.chosen else link_values(span, attr)


def shown_values(span: Span, attr: str) -> SpanValues | None:
    """`span_values`; under the default prefix those of the pipe of entities, where that of the default prefix scores no labelled spans."""
    values = span_values(span, attr)
    if values is not None or attr != DEFAULT_ATTR or has_labelled_spans(span.doc, attr):
        return values
    return span_values(span, ENTITY_ATTR)


def span_accept(span: Span, attr: str) -> bool | None:
    """Span._.<attr>_accept: whether the span reaches its cut-off (`spacy calib threshold`); None without cut-offs."""
    values = shown_values(span, attr)
    return None if values is None else values.accepted


def span_links(span: Span, attr: str) -> dict[str, float] | None:
    """Span._.<attr>_links: identity, or "NIL", -> calibrated probability that the entity is linked to it, above the threshold, highest first;
    None where the span is no entity with values.
    """
    match = row_of_span(span, attr)
    return None if match is None else match[0].scores_of(match[1]) or None


def doc_values(doc: Doc, attr: str) -> TokenValues | None:
    """The values of the likeliest category that `doc.cats` now has; None where it has none (see `token_values`)."""
    block = document_block(doc, attr)
    label = "" if block is None else block.annotation.label_at(doc, 0)
    return block.values_of(0, label) if block is not None and label else None


def unit_values(doc: Doc, row: int, attr: str, unit: str) -> TokenValues | None:
    """The values of the label that a unit of a Doc now carries. unit (str): "token" or "document"."""
    return token_values(doc[row], attr) if unit == TOKEN else doc_values(doc, attr)


def doc_cats(doc: Doc, attr: str) -> dict[str, float] | None:
    """Doc._.<attr>_cats: category -> calibrated probability above the threshold, highest first; None without values."""
    block = document_block(doc, attr)
    return None if block is None else block.scores_of(0)


def doc_cats_raw(doc: Doc, attr: str) -> dict[str, float] | None:
    """Doc._.<attr>_cats_raw: category -> probability before calibration, in the order of Doc._.<attr>_cats."""
    block = document_block(doc, attr)
    return None if block is None else block.raw_of(0)


def doc_accept(doc: Doc, attr: str) -> bool | None:
    """Doc._.<attr>_accept: whether the document's category reaches its cut-off (`spacy calib threshold`); None without
    cut-offs, and where the category has changed since the pipe ran.
    """
    block = document_block(doc, attr)
    if block is None or block.accept is None or block.accept[0] < 0:
        return None
    return bool(block.accept[0]) if block.carries(0, block.annotation.label_at(doc, 0)) else None


def doc_set(doc: Doc, attr: str) -> tuple[str, ...] | None:
    """Doc._.<attr>_set: categories that hold the right one as often as the pipe's `sets` promise; see `token_set`."""
    block = document_block(doc, attr)
    return None if block is None else block.set_of(0)


def _value_of(find: Callable[[Any, str], Any], name: str, owner: Any, attr: str) -> Any:
    """One of the values that `find` gives for a token, a span or a Doc; None where it gives none."""
    values = find(owner, attr)
    return None if values is None else getattr(values, name)


def _shown_token_values(token: Token, attr: str) -> TokenValues | None:
    return token_values(token, attr, shown_row)


def _right_values(span: Span, attr: str) -> SpanValues | None:
    """What stands in the block of whole units; None where it has not the span, or where text or a token's label has changed."""
    return span_values(span, attr + RIGHT)


# Kind of owner -> end of the attribute's name -> its getter.
_GETTERS: dict[Any, dict[str, Any]] = {
    Token: {
        "score": token_score,  # calibrated probability that the label is right that stands there now
        "raw": partial(_value_of, _shown_token_values, "raw"),  # the probability before calibration
        "scores": partial(token_scores, find=shown_row),
        "set": token_set,
        "flag": token_flag,
    },
    Span: {
        "score": partial(_value_of, shown_values, "calibrated"),  # probability that the span is right, by the event of the fit
        "raw": partial(_value_of, shown_values, "raw"),
        "accept": span_accept,
        "link": partial(_value_of, link_values, "calibrated"),  # probability that the identity that the entity carries is right
        "links": span_links,
        "right": partial(_value_of, _right_values, "calibrated"),  # probability that all of the span is right
    },
    Doc: {
        "score": partial(_value_of, doc_values, "calibrated"),  # of the likeliest category in `doc.cats`
        "raw": partial(_value_of, doc_values, "raw"),
        "cats": doc_cats,
        "cats_raw": doc_cats_raw,
        "set": doc_set,
        "accept": doc_accept,
    },
}


def register(attr: str = DEFAULT_ATTR) -> None:
    """Make the attributes of a prefix known in this process; doing it twice is harmless.

    attr (str): A Python identifier. RAISES C001, C112: see `check_attr`. C025: another extension has one of the names.
    """
    check_attr(attr)
    extensions: list[tuple[Any, str, Any]] = [(Doc, attr, doc_view)]
    extensions += [
        (owner, f"{attr}_{suffix}", getter) for owner, getters in _GETTERS.items() for suffix, getter in getters.items()
    ]
    for owner, name, getter in extensions:
        if owner.has_extension(name) and not _is_ours(owner.get_extension(name)[2], getter, attr):
            raise calib_error("C025", attr=attr, owner=f"the extension {owner.__name__}._.{name}")
    for owner, name, getter in extensions:
        if not owner.has_extension(name):
            owner.set_extension(name, getter=partial(getter, attr=attr))


def _is_ours(getter: Any, wanted: Any, attr: str) -> bool:
    ours = partial(wanted, attr=attr)
    given = (getter.func, getter.args, getter.keywords) if isinstance(getter, partial) else ()
    return given == (ours.func, ours.args, ours.keywords)


def register_default() -> None:
    """Register the default attributes unless a name is taken: importing this package must not break spaCy."""
    for attr in (DEFAULT_ATTR, ENTITY_ATTR):
        with contextlib.suppress(CalibError):
            register(attr)


register_default()
