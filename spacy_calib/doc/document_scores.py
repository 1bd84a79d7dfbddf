"""Getters of Doc._.<attr>_score, _raw, _cats, _cats_raw, _interval, _set and _accept, for Docs with text categories."""

from __future__ import annotations

from spacy.tokens import Doc

from .parsed import ParsedBlock, TokenValues
from .rows import document_block


def block_of_document(doc: Doc, attr: str) -> ParsedBlock | None:
    """What a pipe wrote of a Doc as a whole, in row 0; None without values."""
    block = document_block(doc, attr)
    return None if block is None else ParsedBlock(0, block)


def doc_values(doc: Doc, attr: str) -> TokenValues | None:
    """The values of the likeliest category that `doc.cats` now has; None where it has none (see `token_values`)."""
    parsed = block_of_document(doc, attr)
    label = "" if parsed is None else parsed.annotation.label_at(doc, 0)
    return parsed.values_of(0, label) if parsed is not None and label else None


def doc_score(doc: Doc, attr: str) -> float | None:
    """Doc._.<attr>_score: calibrated probability that the likeliest category of `doc.cats` is right, in [0, 1]."""
    values = doc_values(doc, attr)
    return None if values is None else values.calibrated


def doc_raw(doc: Doc, attr: str) -> float | None:
    """Doc._.<attr>_raw: the probability before calibration, in [0, 1]."""
    values = doc_values(doc, attr)
    return None if values is None else values.raw


def doc_interval(doc: Doc, attr: str) -> tuple[float, float] | None:
    """Doc._.<attr>_interval: (low, high) probability that the likeliest category is right; see `token_interval`."""
    values = doc_values(doc, attr)
    return None if values is None else values.interval


def doc_cats(doc: Doc, attr: str) -> dict[str, float] | None:
    """Doc._.<attr>_cats: category -> calibrated probability above the threshold, highest first; None without values."""
    parsed = block_of_document(doc, attr)
    return None if parsed is None else parsed.scores_of(0)


def doc_cats_raw(doc: Doc, attr: str) -> dict[str, float] | None:
    """Doc._.<attr>_cats_raw: category -> probability before calibration, in the order of Doc._.<attr>_cats."""
    parsed = block_of_document(doc, attr)
    return None if parsed is None else parsed.raw_of(0)


def doc_accept(doc: Doc, attr: str) -> bool | None:
    """Doc._.<attr>_accept: whether the document's category reaches its cut-off (`spacy calib threshold`); None without
    cut-offs, and where the category has changed since the pipe ran.
    """
    parsed = block_of_document(doc, attr)
    if parsed is None or parsed.accept is None or parsed.accept[0] < 0:
        return None
    return bool(parsed.accept[0]) if parsed.carries(0, parsed.annotation.label_at(doc, 0)) else None


def doc_set(doc: Doc, attr: str) -> tuple[str, ...] | None:
    """Doc._.<attr>_set: categories that hold the right one as often as the pipe's `sets` promise; see `token_set`."""
    parsed = block_of_document(doc, attr)
    return None if parsed is None else parsed.set_of(0)
