"""Docs with scores -> rows to write: one per token, entity, sentence or document, column by column.

A column has the name of the attribute after its prefix: `score` holds `._.<attr>_score`. Each calib pipe has its own rows, with
its prefix in the column `attr`, so that files of all pipelines have the same columns and can be joined.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spacy.tokens import Doc, Span

from ...annotations import Annotation
from ...doc.attributes import doc_accept, span_values
from ...doc.block import Block
from ...doc.rows import annotations_of, document_block, rows_of
from ...gold.keys import ORIGIN
from ...optional import load_pyarrow
from ...pairs.documents import TOKEN
from .messages import calib_error

Columns = dict[str, list[Any]]

# Column -> (kind, what it holds). This is promised: new columns may follow behind, none changes its meaning.
_OF_ALL = {
    "id": ("text", "the text's own id, as text; null where it has none"),
    "doc": ("number", "the text's running number among all texts, from 0"),
    "attr": ("text", "prefix of the calib pipe"),
    "start": ("number", "first character, in the text"),
    "end": ("number", "the character behind the last"),
    "text": ("text", "what stands there"),
    "label": ("text", "label that the pipeline gave; null where it gave none, and of whole sentences"),
    "score": ("share", "calibrated probability that the label is right; null where there is none"),
    "raw": ("share", "the same before calibration"),
}
_SET = {"set": ("texts", "labels that hold the right one as often as was promised")}
_ACCEPT = {"accept": ("yes", "whether it reaches its cut-off")}
_RIGHT = {"right": ("share", "probability that the whole is right, by an event pipe")}
_TOKENS = {
    "tokens": ("number", "how many tokens it has"),
    "mean": ("share", "mean score of its tokens"),
    "lowest": ("share", "lowest score of its tokens"),
}
COLUMNS = {
    "token": {**_OF_ALL, **_SET, "flag": ("yes", "whether it may be inside an entity that was missed")},
    "entity": {**_OF_ALL, **_ACCEPT, **_RIGHT},
    "sentence": {**_OF_ALL, **_ACCEPT, **_RIGHT, **_TOKENS},
    "document": {
        **_OF_ALL,
        **_SET,
        **_ACCEPT,
        "cats": ("categories", "all categories above the threshold, likeliest first, each with label, score and raw"),
        **_TOKENS,
    },
}
UNITS = tuple(COLUMNS)


def score_rows(
    docs: Iterable[Doc], attr: str | Sequence[str], unit: str, *, ids: Sequence[Any] | None = None, first: int = 0
) -> Columns:
    """Return the rows of some Docs.

    attr (str | Sequence[str]): Prefix of one calib pipe, or of several. unit (str): Whose rows, see COLUMNS.
    ids (Sequence | None): Each Doc's own id, or None; without it, the ids that the reader of the texts left. first (int):
    Number of the first Doc.
    RETURNS (dict): Column (see COLUMNS) -> list, None for no value. Tokens, sentences and documents have a row for each pipe
    that scores them or their tokens; entities are the spans that the pipe scores.
    RAISES C001: there is no such unit.
    """
    columns: Columns = {name: [] for name in columns_of_unit(unit)}
    attrs, rows_of, names = (attr,) if isinstance(attr, str) else tuple(attr), _ROWS[unit], _Names()
    for number, doc in enumerate(docs):
        own_id = doc.user_data.get(ORIGIN, {}).get("id") if ids is None else ids[number]
        if own_id is not None and not isinstance(own_id, str):
            own_id = json.dumps(own_id, ensure_ascii=False, default=str)
        for prefix in attrs:
            rows = rows_of(doc, prefix, names)
            n_rows = len(rows["start"])
            rows |= {"id": [own_id] * n_rows, "doc": [first + number] * n_rows, "attr": [prefix] * n_rows}
            for name, column in columns.items():
                column += rows[name] if name in rows else [None] * n_rows
    return columns


def columns_of_unit(unit: str) -> dict[str, tuple[str, str]]:
    """Return column -> (kind, meaning). RAISES C001: there is no such unit."""
    if unit not in COLUMNS:
        raise calib_error("C001", name="unit", wanted=f"one of {', '.join(UNITS)}", given=repr(unit))
    return COLUMNS[unit]


def score_schema(unit: str) -> Any:
    """Return the Arrow schema of the rows. RAISES C001: there is no such unit. C304: pyarrow is not installed."""
    columns = columns_of_unit(unit)
    pa = load_pyarrow()
    category = pa.struct([("label", pa.string()), ("score", pa.float64()), ("raw", pa.float64())])
    kinds = {
        "text": pa.string(),
        "number": pa.int64(),
        "share": pa.float64(),
        "yes": pa.bool_(),
        "texts": pa.list_(pa.string()),
        "categories": pa.list_(category),
    }
    return pa.schema([(name, kinds[kind]) for name, (kind, _) in columns.items()])


class _Names:
    """The texts of hashes, each looked up once in a call."""

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[int, str | None]] = {}

    def of(self, kind: str, hashes: Sequence[int], name_at: Callable[[int], str]) -> list[str | None]:
        """Return the name of each hash, None for 0. kind (str): Kind of the hashes. name_at (Callable): Place -> name."""
        names = self._by_kind.setdefault(kind, {0: None})
        for i, key in enumerate(hashes):
            if key not in names:
                names[key] = name_at(i) or None
        return [names[key] for key in hashes]


# Tokens


def _token_rows(doc: Doc, attr: str, names: _Names) -> Columns:
    if not scores_tokens(doc, attr):
        return {"start": []}
    place: Any = doc.to_array(["IDX", "ORTH"]).reshape(-1, 2)
    starts, orths = place[:, 0].tolist(), place[:, 1].tolist()
    texts = [text or "" for text in names.of("text", orths, lambda i: doc[i].text)]
    return {
        "start": starts,
        "end": [start + len(text) for start, text in zip(starts, texts, strict=True)],
        "text": texts,
        **_values_of_tokens(doc, attr, names),
    }


def _values_of_tokens(doc: Doc, attr: str, names: _Names) -> Columns:
    """Return the label of each token, and the values of its row."""
    blocks = [(block.parse(), tokens.tolist(), rows.tolist()) for block, tokens, rows in rows_of(doc, attr) if len(tokens)]
    annotations = {block.annotation.name: block.annotation for block, _, _ in blocks}
    labels = {name: _labels(doc, annotation, names) for name, annotation in annotations.items()}
    # A token without a row has the label of any annotation.
    columns: Columns = {"label": [*labels.values()][-1] if labels else [None] * len(doc)}
    for block, tokens, rows in blocks:
        block_labels = labels[block.annotation.name]
        values = _values_of_rows(block, rows, [block_labels[i] for i in tokens])
        if len(tokens) < len(doc):
            values = {
                name: _replace_at(columns.get(name, [None] * len(doc)), tokens, column) for name, column in values.items()
            }
        columns |= values
    return columns


def _replace_at(column: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Replace values of a column at some places."""
    new_values = dict(zip(places, values, strict=True))
    return [new_values.get(i, value) for i, value in enumerate(column)]


def _labels(doc: Doc, annotation: Annotation, names: _Names) -> list[str | None]:
    return names.of(annotation.name, annotation.hashes(doc).tolist(), lambda i: annotation.label_at(doc, i))


def _values_of_rows(block: Block, rows: Sequence[int], labels: list[str | None]) -> Columns:
    """Return the values of some rows of a block, whose tokens have these labels."""
    entries = [None if label is None else block.entry_of(row, label) for row, label in zip(rows, labels, strict=True)]
    scores = {"score": block.calibrated, "raw": block.raw}
    columns: Columns = {name: [None if i is None else values[i] for i in entries] for name, values in scores.items()}
    if block.in_set is not None:
        columns["set"] = [None if (label_set := block.set_of(row)) is None else list(label_set) for row in rows]
    if block.flag is not None:
        columns["flag"] = [None if block.flag[row] < 0 else bool(block.flag[row]) for row in rows]
    return {"label": labels, **columns}


# Entities and sentences


def _entity_rows(doc: Doc, attr: str, names: _Names) -> Columns:
    """Return the rows of entities, without sentences, the spans of arcs."""
    annotations = [annotation for annotation in annotations_of(doc, attr) if annotation.span_words[0] != "sentence"]
    spans = [
        (span, span.kb_id_ if annotation.spans_are_units else span.label_)
        for annotation in annotations
        for span in annotation.spans_on(doc)
    ]
    return {**_span_rows([span for span, _ in spans], attr), "label": [label or None for _, label in spans]}


def _span_rows(spans: Sequence[Span], attr: str) -> Columns:
    values, right = ([span_values(span, name) for span in spans] for name in (attr, f"{attr}_right"))
    return {
        "start": [span.start_char for span in spans],
        "end": [span.end_char for span in spans],
        "text": [span.text for span in spans],
        "label": [span.label_ or None for span in spans],
        "score": [None if value is None else value.calibrated for value in values],
        "raw": [None if value is None else value.raw for value in values],
        "accept": [None if value is None or value.accept < 0 else bool(value.accept) for value in values],
        "right": [None if value is None else value.calibrated for value in right],
    }


def _sentence_rows(doc: Doc, attr: str, names: _Names) -> Columns:
    """Return the rows of sentences; a text without sentences counts as one."""
    if not len(doc) or not scores_tokens(doc, attr):
        return {"start": []}
    spans = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
    scores = _token_scores(doc, attr, names)
    return {**_span_rows(spans, attr), **_of_tokens([scores[span.start : span.end] for span in spans])}


def scores_tokens(doc: Doc, attr: str) -> bool:
    """Return whether the pipe scores tokens; True if it left nothing on the Doc."""
    annotations = annotations_of(doc, attr)
    return not annotations or any(annotation.unit == TOKEN for annotation in annotations)


def _token_scores(doc: Doc, attr: str, names: _Names) -> Sequence[float | None]:
    return _values_of_tokens(doc, attr, names).get("score", [None] * len(doc))


def _of_tokens(scores: Sequence[Sequence[float | None]]) -> Columns:
    """Summarize tokens. scores: Those of each unit's tokens."""
    scored_tokens = [[score for score in of_unit if score is not None] for of_unit in scores]
    return {
        "tokens": [len(of_unit) for of_unit in scores],
        "mean": [sum(token_scores) / len(token_scores) if token_scores else None for token_scores in scored_tokens],
        "lowest": [min(token_scores, default=None) for token_scores in scored_tokens],
    }


# Documents


def _document_rows(doc: Doc, attr: str, names: _Names) -> Columns:
    text = doc.text
    return {
        "start": [0],
        "end": [len(text)],
        "text": [text],
        **_of_tokens([_token_scores(doc, attr, names)]),
        **_values_of_document(doc, attr),
    }


def _values_of_document(doc: Doc, attr: str) -> Columns:
    """Return the values of the Doc as a whole; its label is the top category even without scores."""
    block = document_block(doc, attr)
    if block is None:
        return {"label": [_category(doc, attr)]}
    raw = block.raw_of(0)
    return {
        **_values_of_rows(block, [0], [block.annotation.label_at(doc, 0) or None]),
        "accept": [doc_accept(doc, attr)],
        "cats": [[{"label": label, "score": score, "raw": raw[label]} for label, score in block.scores_of(0).items()]],
    }


def _category(doc: Doc, attr: str) -> str | None:
    for annotation in annotations_of(doc, attr):
        if annotation.unit != TOKEN:
            return annotation.label_at(doc, 0) or None
    return None


_ROWS: dict[str, Callable[[Doc, str, _Names], Columns]] = {
    "token": _token_rows,
    "entity": _entity_rows,
    "sentence": _sentence_rows,
    "document": _document_rows,
}
