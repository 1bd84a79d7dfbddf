"""The attributes that users read. Each is a getter: it looks into the blocks that calib pipes wrote on the Doc (see
`blocks`), and gives None where these do not, or no longer, belong to the token or span that is asked about.

Token._.<attr>_score, _raw, _scores, _interval, _set, _flag; Span._.<attr>_score, _raw, _accept, _right; Doc._.<attr>
and Doc._.<attr>_map; for categories Doc._.<attr>_score, _raw, _cats, _cats_raw, _interval, _set, _accept. Users set
only Doc._.calib_source, see `gold`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, Token

from ..errors import calib_error
from ..pairs.documents import TOKEN, counted
from ..types import Floats, Ints
from .annotations import get_annotation, plain_name
from .blocks import sound_blocks
from .document_scores import doc_accept, doc_cats, doc_cats_raw, doc_interval, doc_raw, doc_score, doc_set, doc_values
from .gold_source import register_source
from .names import check_attr
from .parsed import SpanValues, TokenValues
from .rows import claimed_rows, document_block, find_row, find_span, held_spans

if TYPE_CHECKING:
    from .sampling import Draws

DEFAULT_ATTR = "calib"


def token_values(token: Token, attr: str) -> TokenValues | None:
    """The values of the label that the token now carries.

    RETURNS: None where it carries no label, where the label has no value (the model does not know it, or it was set
        after the pipe ran and its raw score is below the threshold), and where no row of a block belongs to the token.
    """
    found = find_row(token, attr)
    if found is None:
        return None
    block, row = found
    label = block.annotation.label(token)
    return block.values_of(row, label) if label else None


def token_score(token: Token, attr: str) -> float | None:
    """Token._.<attr>_score: calibrated probability that the label the token now carries is right, in [0, 1]."""
    found = find_row(token, attr)
    if found is None:
        return None
    block, row = found
    entry = block.entry_of(row, block.annotation.label(token))
    return None if entry is None else block.calibrated[entry]


def token_raw(token: Token, attr: str) -> float | None:
    """Token._.<attr>_raw: the probability before calibration, in [0, 1]."""
    values = token_values(token, attr)
    return None if values is None else values.raw


def token_interval(token: Token, attr: str) -> tuple[float, float] | None:
    """Token._.<attr>_interval: (low, high) probability that the token's current label is right, by the Venn-Abers
    predictor of its group, before normalization. For texts like those of the fit, one of the two is calibrated; the
    score comes from another map and may lie outside. None where the pipe keeps no intervals (setting `intervals`).
    """
    values = token_values(token, attr)
    return None if values is None else values.interval


def token_set(token: Token, attr: str) -> tuple[str, ...] | None:
    """Token._.<attr>_set: tags that hold the right one as often as the pipe's `sets` promise, likeliest first.

    RETURNS: None where the pipe makes no sets, the token has no values, or only the set of all tags keeps the promise.
    """
    found = find_row(token, attr)
    return None if found is None else found[0].set_of(found[1])


def token_flag(token: Token, attr: str) -> bool | None:
    """Token._.<attr>_flag: whether the token, even one that got O, may be inside an entity and must be looked at, so
    that no more entities are missed than was asked for (`spacy calib threshold --recall`).

    RETURNS: None where the pipe has no such cut-offs, and where the token has no values.
    """
    found = find_row(token, attr)
    flag = -1 if found is None or found[0].flag is None else found[0].flag[found[1]]
    return None if flag < 0 else bool(flag)


def token_scores(token: Token, attr: str) -> dict[str, float] | None:
    """Token._.<attr>_scores: tag -> calibrated probability above the threshold, highest first; None without values."""
    found = find_row(token, attr)
    return None if found is None else found[0].scores_of(found[1])


def unit_values(doc: Doc, row: int, attr: str, unit: str) -> TokenValues | None:
    """The values of the label that a unit of a Doc now carries. unit (str): "token" or "document"."""
    return token_values(doc[row], attr) if unit == TOKEN else doc_values(doc, attr)


def span_values(span: Span, attr: str) -> SpanValues | None:
    """What the pipe wrote of a span that stood on the Doc when it ran. None for any other span, and where its text has
    changed since or, if the probability is of its tokens' labels, one of these."""
    found = find_span(span, attr) if len(span) else None
    return found if found is not None and found.chosen else None


def span_score(span: Span, attr: str) -> float | None:
    """Span._.<attr>_score: calibrated probability that the span is right, by the event of the fit, in [0, 1]."""
    values = span_values(span, attr)
    return None if values is None else values.calibrated


def span_raw(span: Span, attr: str) -> float | None:
    """Span._.<attr>_raw: the probability before calibration, in [0, 1]."""
    values = span_values(span, attr)
    return None if values is None else values.raw


def span_accept(span: Span, attr: str) -> bool | None:
    """Span._.<attr>_accept: whether the span reaches its cut-off (`spacy calib threshold`); None without cut-offs."""
    values = span_values(span, attr)
    return None if values is None or values.accept < 0 else bool(values.accept)


def span_right(span: Span, attr: str) -> float | None:
    """Span._.<attr>_right: probability that the event pipe's event holds for the span (all labels right), in [0, 1].

    RETURNS: None for a span that the pipe was not asked about, and where its text or a label of its tokens has changed.
    """
    values = span_values(span, f"{attr}_right")
    return None if values is None else values.calibrated


class ScoredSpan(NamedTuple):
    """A span with its probability.

    start, end (int): First token, and the one after the last. label (str): Its label. raw, score (float): Its
        probability before and after calibration. accept (bool | None): Whether it reaches its cut-off; None without
        cut-offs, and for candidates. event (str): What has to hold for it to be right.
    """

    start: int
    end: int
    label: str
    raw: float
    score: float
    accept: bool | None
    event: str


@dataclass(frozen=True, eq=False, repr=False)
class DocCalib(dict):
    """Read-only view of a Doc's scores, one entry per token and tag above the threshold. As a dict it holds the same as
    plain data for `Doc.to_json(underscore=["calib"])`: layer, rows, tags, raw, calibrated, ents and candidates.

    rows (Ints): Token index of each entry, ascending; 0 for a whole Doc. tags (NDArray[object]): Tag of each entry.
    raw, calibrated (Floats): Its probability before and after calibration.
    columns (Ints): The tag's column in the source's labels, -1 where the block does not keep it.
    layer (str): Name of the tags' annotation. On Docs joined from Docs with scores of several annotations, the one of
        most tokens; the others have no values here.
    scored (NDArray[bool]): Which tokens have values, shape (n_tokens,); (1,) for a document. doc (Doc): Whose scores.
    ents (tuple[ScoredSpan, ...]): The Doc's entities (or categorized spans) with a score, in the order of the text.
    candidates (tuple[ScoredSpan, ...]): Spans that the beam held but did not choose, likeliest first.
    """

    rows: Ints
    tags: NDArray[np.object_]
    raw: Floats
    calibrated: Floats
    columns: Ints
    layer: str
    scored: NDArray[np.bool_]
    doc: Doc
    ents: tuple[ScoredSpan, ...] = ()
    candidates: tuple[ScoredSpan, ...] = ()

    def __post_init__(self) -> None:
        entries = {name: getattr(self, name).tolist() for name in ("rows", "tags", "raw", "calibrated")}
        spans = {name: [span._asdict() for span in getattr(self, name)] for name in ("ents", "candidates")}
        self.update(layer=self.layer, **entries, **spans)

    def __len__(self) -> int:
        return len(self.rows)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        """Short: what is scored, not the scores."""
        spans = f", {len(self.ents)} entities" if self.ents else ""
        units = counted(self.unit, len(self.scored))
        return f"<DocCalib: {int(self.scored.sum())} of {units} scored ({plain_name(self.layer)}), {len(self)} entries{spans}>"

    @property
    def unit(self) -> str:
        """What a row is of, "token" or "document"."""
        return get_annotation(self.layer).unit

    def to_dense(self, labels: list[str], calibrated: bool = True) -> Floats:
        """An array of shape (n_tokens, len(labels)), (1, len(labels)) for a document: 0 below the threshold, NaN in the
        rows of units without values. labels (list[str]): The columns wanted; other tags are dropped.
        """
        dense = np.where(self.scored[:, None], np.zeros((len(self.scored), len(labels))), np.nan)
        column = {label: i for i, label in enumerate(labels)}
        wanted = np.array([column.get(tag, -1) for tag in self.tags], dtype=np.intp)
        keep = wanted >= 0
        dense[self.rows[keep], wanted[keep]] = (self.calibrated if calibrated else self.raw)[keep]
        return dense

    def sample(self, n: int = 100, seed: int = 0) -> Draws:
        """n whole annotations, drawn by the calibrated probabilities. RAISES C001: n or seed. C410: scores of arcs."""
        from .sampling import sample_view

        return sample_view(self, n, seed)


def doc_view(doc: Doc, attr: str) -> DocCalib | None:
    """Doc._.<attr>: the scores of all tokens, or of the document, as arrays; None where the Doc has no block."""
    document = document_block(doc, attr)
    if document is not None:
        n_units, row = 1, np.zeros(1, dtype=np.intp)
        matches = [(document, row, row)]
    else:
        n_units, matches = len(doc), claimed_rows(doc, attr)
    if not matches:
        return None
    # A Doc joined from Docs of two pipelines may hold tags and entity types: show those of most tokens.
    held = Counter[str]()
    for block, tokens, _ in matches:
        held[block["layer"]] += len(tokens)
    layer = max(held, key=held.__getitem__)
    matches = [match for match in matches if match[0]["layer"] == layer]
    scored = np.zeros(n_units, dtype=bool)
    parts: list[tuple[Any, ...]] = []
    for block, tokens, rows in matches:
        lengths = (block["indptr"][rows + 1] - block["indptr"][rows]).astype(np.intp)
        scored[tokens[lengths > 0]] = True
        first = np.cumsum(lengths) - lengths
        entries = np.repeat(block["indptr"][rows].astype(np.intp) - first, lengths) + np.arange(lengths.sum())
        names = np.array([*block["tags"], None], dtype=object)[:-1]
        columns = block["column"][entries] if "column" in block else np.full(len(entries), -1, dtype=np.intp)
        parts.append((np.repeat(tokens, lengths), names[block["tag"][entries]], block["raw"][entries],
                      block["calibrated"][entries], columns))  # fmt: skip
    columns_of_parts: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns_of_parts[0], kind="stable")
    rows, tags, raw, calibrated, columns = (array[order] for array in columns_of_parts)
    for array in (rows, tags, raw, calibrated, columns, scored):
        array.flags.writeable = False
    ents, candidates = _scored_spans(doc, attr, layer)
    return DocCalib(rows, tags, raw, calibrated, columns, layer, scored, doc, ents, candidates)


def _scored_spans(doc: Doc, attr: str, layer: str) -> tuple[tuple[ScoredSpan, ...], tuple[ScoredSpan, ...]]:
    """(spans on the Doc, candidates) of its blocks, as far as text and labels are still those that were scored."""
    held = held_spans(doc.user_data, attr, layer)
    if not held:
        return (), ()
    on_doc = {(span.start, span.end, span.label_) for span in get_annotation(layer).spans_on(doc)}
    first = {token.idx: token.i for token in doc}
    after = {token.idx + len(token): token.i + 1 for token in doc}
    ents, candidates = [], []
    for (start_char, end_char, label), values, event in held:
        start, end = first.get(start_char), after.get(end_char)
        if start is None or end is None or not values.agrees(doc[start:end]):
            continue
        accept = None if values.accept < 0 or not values.chosen else bool(values.accept)
        scored = ScoredSpan(start, end, label, values.raw, values.calibrated, accept, event)
        if not values.chosen:
            candidates.append(scored)
        elif (start, end, label) in on_doc:
            ents.append(scored)
    return tuple(ents), tuple(sorted(candidates, key=lambda one: -one.score))


def doc_map(doc: Doc, attr: str) -> str | None:
    """Doc._.<attr>_map: which map its scores come from, "home", or "anywhere" for texts of sources that the fit did not
    know. None where the pipe has one map, the Doc has no scores, or it was joined from Docs of both maps.
    """
    held = {block.get("map") for _, block in sound_blocks(doc.user_data, attr)}
    return held.pop() if len(held) == 1 else None


_GETTERS: dict[Any, dict[str, Any]] = {
    Token: {
        "score": token_score,
        "raw": token_raw,
        "scores": token_scores,
        "interval": token_interval,
        "set": token_set,
        "flag": token_flag,
    },
    Span: {"score": span_score, "raw": span_raw, "accept": span_accept, "right": span_right},
    Doc: {
        "score": doc_score,
        "raw": doc_raw,
        "cats": doc_cats,
        "cats_raw": doc_cats_raw,
        "interval": doc_interval,
        "set": doc_set,
        "accept": doc_accept,
        "map": doc_map,
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
    return isinstance(getter, partial) and getter.func is wanted and getter.keywords == {"attr": attr}


def register_default() -> None:
    """Register the default attributes unless a name is taken: importing this package must not break spaCy."""
    import contextlib

    from ..errors import CalibError

    register_source()
    with contextlib.suppress(CalibError):
        register()


register_default()
