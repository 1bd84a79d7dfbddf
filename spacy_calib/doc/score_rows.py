"""Docs with scores -> the rows that are written of them: one per token, entity, sentence or document, column by column.

A column is called what the attribute is called behind its prefix: `score` holds `._.<attr>_score`. Of several calib pipes there is a row each, told
apart by the column `attr`: so files of all pipelines have the same columns, whatever their pipes are called, and can be joined.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spacy.tokens import Doc, Span

from ..errors import calib_error
from ..pairs.documents import TOKEN
from .annotations import Annotation
from .attributes import span_accept, span_right, span_values
from .collect import ORIGIN
from .document_scores import doc_accept, doc_cats, doc_cats_raw, doc_set, doc_values
from .rows import ParsedBlock, TokenValues, annotations_of, rows_of_tokens

Columns = dict[str, list[Any]]

# Column -> (kind, what it holds). They are promised: new ones may follow behind, none changes its meaning.
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
_INTERVAL = {"low": ("share", "lower end of the interval of the score"), "high": ("share", "upper end")}
_SET = {"set": ("texts", "labels that hold the right one as often as was promised")}
_ACCEPT = {"accept": ("yes", "whether it reaches its cut-off")}
_RIGHT = {"right": ("share", "probability that the whole is right, by an event pipe")}
_TOKENS = {
    "tokens": ("number", "how many tokens it has"),
    "mean": ("share", "mean score of its tokens"),
    "lowest": ("share", "lowest score of its tokens"),
}
COLUMNS = {
    "token": {**_OF_ALL, **_INTERVAL, **_SET, "flag": ("yes", "whether it may be inside an entity that was missed")},
    "entity": {**_OF_ALL, **_ACCEPT, **_RIGHT},
    "sentence": {**_OF_ALL, **_ACCEPT, **_RIGHT, **_TOKENS},
    "document": {
        **_OF_ALL,
        **_INTERVAL,
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
    """The rows of some Docs.

    attr (str | Sequence[str]): Prefix of the calib pipe, or of several. unit (str): token, entity, sentence or document.
    ids (Sequence | None): The own id of each Doc, None for none; where nothing is given, what the reader of the texts left on them.
    first (int): Running number of the first Doc.
    RETURNS (dict): Column (see COLUMNS) -> list, None where there is nothing. A token, sentence or document has a row for each pipe that scores
        such units or what they are made of; entities are those of `doc.ents`, or of the span group, that the pipe reads.
    RAISES C001: there is no such unit.
    """
    columns: Columns = {name: [] for name in columns_of_unit(unit)}
    rows_of = _ROWS[unit]
    for number, doc in enumerate(docs):
        own_id = doc.user_data.get(ORIGIN, {}).get("id") if ids is None else ids[number]
        for one in (attr,) if isinstance(attr, str) else attr:
            rows = rows_of(doc, one)
            n = len(rows["start"])
            rows = {"id": [_as_text(own_id)] * n, "doc": [first + number] * n, "attr": [one] * n, **rows}
            for name, column in columns.items():
                column += rows.get(name, [None] * n)
    return columns


def columns_of_unit(unit: str) -> dict[str, tuple[str, str]]:
    """Column -> (kind, meaning). RAISES C001: there is no such unit."""
    if unit not in COLUMNS:
        raise calib_error("C001", name="unit", wanted=f"one of {', '.join(UNITS)}", given=repr(unit))
    return COLUMNS[unit]


def score_schema(unit: str) -> Any:
    """The Arrow schema of the rows. RAISES C001: there is no such unit. C304: pyarrow is not installed."""
    from ..arrays.files.parquet import load_pyarrow

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


def _as_text(given: Any) -> str | None:
    return given if given is None or isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)


# Tokens


def _token_rows(doc: Doc, attr: str) -> Columns:
    if not scores_tokens(doc, attr):
        return {"start": []}
    held = rows_of_tokens(doc, attr)
    starts = doc.to_array(["IDX"]).reshape(-1).tolist()
    texts = [token.text for token in doc]
    labels, values = _labels_and_values(doc, held)
    intervals = [(None, None) if one is None or one.interval is None else one.interval for one in values]
    return {
        "start": starts,
        "end": [start + len(text) for start, text in zip(starts, texts, strict=True)],
        "text": texts,
        "label": labels,
        "score": [None if one is None else one.calibrated for one in values],
        "raw": [None if one is None else one.raw for one in values],
        "low": [low for low, _ in intervals],
        "high": [high for _, high in intervals],
        "set": [None if one is None or (found := one[0].set_of(one[1])) is None else list(found) for one in held],
        "flag": [_flag(one) for one in held],
    }


def _labels_and_values(
    doc: Doc, held: Sequence[tuple[ParsedBlock, int] | None]
) -> tuple[list[str | None], list[TokenValues | None]]:
    """The label that each token carries, and what its row says of it."""
    labels: list[str | None] = [None] * len(doc)
    for annotation in {found[0].annotation.name: found[0].annotation for found in held if found is not None}.values():
        for i, label in enumerate(_labels(doc, annotation)):
            own = held[i]
            if own is None or own[0].annotation.name == annotation.name:
                labels[i] = label
    values = [
        None if own is None or label is None else own[0].values_of(own[1], label)
        for own, label in zip(held, labels, strict=True)
    ]
    return labels, values


def _labels(doc: Doc, annotation: Annotation) -> list[str | None]:
    """The label of each token; the annotation is asked once for each distinct one."""
    names: dict[int, str | None] = {0: None}
    hashes = annotation.hashes(doc).tolist()
    for i, key in enumerate(hashes):
        if key not in names:
            names[key] = annotation.label_at(doc, i) or None
    return [names[key] for key in hashes]


def _flag(found: tuple[ParsedBlock, int] | None) -> bool | None:
    flag = -1 if found is None or found[0].flag is None else found[0].flag[found[1]]
    return None if flag < 0 else bool(flag)


# Entities and sentences


def _entity_rows(doc: Doc, attr: str) -> Columns:
    spans = [span for annotation in annotations_of(doc, attr) for span in _entities_on(doc, annotation)]
    return _span_rows(spans, attr)


def _entities_on(doc: Doc, annotation: Annotation) -> Sequence[Span]:
    """Of arcs the spans are sentences, which have rows of their own."""
    return annotation.spans_on(doc) if annotation.span_words[0] != "sentence" else ()


def _span_rows(spans: Sequence[Span], attr: str) -> Columns:
    values = [span_values(span, attr) for span in spans]
    return {
        "start": [span.start_char for span in spans],
        "end": [span.end_char for span in spans],
        "text": [span.text for span in spans],
        "label": [span.label_ or None for span in spans],
        "score": [None if one is None else one.calibrated for one in values],
        "raw": [None if one is None else one.raw for one in values],
        "accept": [span_accept(span, attr) for span in spans],
        "right": [span_right(span, attr) for span in spans],
    }


def _sentence_rows(doc: Doc, attr: str) -> Columns:
    """A text without sentences is one."""
    if not len(doc) or not scores_tokens(doc, attr):
        return {"start": []}
    spans = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
    scores = _token_scores(doc, attr)
    return {**_span_rows(spans, attr), **_of_tokens([scores[span.start : span.end] for span in spans])}


def scores_tokens(doc: Doc, attr: str) -> bool:
    """Whether the pipe gives scores to tokens; True where it left nothing on the Doc."""
    found = annotations_of(doc, attr)
    return not found or any(annotation.unit == TOKEN for annotation in found)


def _token_scores(doc: Doc, attr: str) -> list[float | None]:
    values = _labels_and_values(doc, rows_of_tokens(doc, attr))[1]
    return [None if one is None else one.calibrated for one in values]


def _of_tokens(scores: Sequence[Sequence[float | None]]) -> Columns:
    """scores: Of the tokens of each unit."""
    held = [[score for score in of_unit if score is not None] for of_unit in scores]
    return {
        "tokens": [len(of_unit) for of_unit in scores],
        "mean": [sum(own) / len(own) if own else None for own in held],
        "lowest": [min(own, default=None) for own in held],
    }


# Documents


def _document_rows(doc: Doc, attr: str) -> Columns:
    values = doc_values(doc, attr)
    low, high = (None, None) if values is None or values.interval is None else values.interval
    found = doc_set(doc, attr)
    return {
        "start": [0],
        "end": [len(doc.text)],
        "text": [doc.text],
        "label": [_category(doc, attr)],
        "score": [None if values is None else values.calibrated],
        "raw": [None if values is None else values.raw],
        "low": [low],
        "high": [high],
        "set": [None if found is None else list(found)],
        "accept": [doc_accept(doc, attr)],
        "cats": [_categories(doc, attr)],
        **_of_tokens([_token_scores(doc, attr)]),
    }


def _category(doc: Doc, attr: str) -> str | None:
    """The likeliest of `doc.cats`, where the pipe scores categories."""
    for annotation in annotations_of(doc, attr):
        if annotation.unit != TOKEN:
            return annotation.label_at(doc, 0) or None
    return None


def _categories(doc: Doc, attr: str) -> list[dict[str, Any]] | None:
    scores, raw = doc_cats(doc, attr), doc_cats_raw(doc, attr)
    if scores is None or raw is None:
        return None
    return [{"label": label, "score": score, "raw": raw[label]} for label, score in scores.items()]


_ROWS: dict[str, Callable[[Doc, str], Columns]] = {
    "token": _token_rows,
    "entity": _entity_rows,
    "sentence": _sentence_rows,
    "document": _document_rows,
}
