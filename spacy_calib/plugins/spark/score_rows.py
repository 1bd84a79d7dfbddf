"""Convert Docs with scores into columns of a table, with a row for each token, entity, sentence or document.

A column has the name of an attribute without its prefix: `score` contains `._.<attr>_score`. Each calib pipe has its own rows,
with its prefix in the column `attr`, so that files of all pipelines have the same columns and can be concatenated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spacy.tokens import Doc, Span

from ...annotations import Annotation
from ...doc.attributes import doc_accept, span_values
from ...doc.store import Block, annotations_of, document_block, rows_of
from ...gold.keys import ORIGIN
from ...optional import load_pyarrow
from ...pairs.documents import TOKEN
from .messages import calib_error

Columns = dict[str, list[Any]]

# Column -> (kind, meaning). These are public: new columns may be appended, but no meaning changes.
_COMMON = {
    "id": ("text", "id of the text; null if it has none"),
    "doc": ("number", "number of the text among all texts, from 0"),
    "attr": ("text", "prefix of the calib pipe"),
    "start": ("number", "offset of the first character in the text"),
    "end": ("number", "offset of the character after the last"),
    "text": ("text", "the characters from start to end"),
    "label": ("text", "predicted label; null if there is none, and for sentences"),
    "score": ("share", "calibrated probability that the label is right; null if there is none"),
    "raw": ("share", "the same before calibration"),
}
_ACCEPT = {"accept": ("yes", "whether the score reaches the cut-off")}
_TOKENS = {
    "tokens": ("number", "number of tokens"),
    "mean": ("share", "mean score of the tokens"),
    "lowest": ("share", "lowest score of the tokens"),
}
COLUMNS = {
    "token": {**_COMMON, "flag": ("yes", "whether the token may be in a missed entity")},
    "entity": {**_COMMON, **_ACCEPT},
    "sentence": {**_COMMON, **_ACCEPT, **_TOKENS},
    "document": {
        **_COMMON,
        **_ACCEPT,
        "cats": ("categories", "all categories above the threshold, highest score first, each with label, score and raw"),
        **_TOKENS,
    },
}
UNITS = tuple(COLUMNS)


def score_rows(
    docs: Iterable[Doc], attr: str | Sequence[str], unit: str, *, ids: Sequence[Any] | None = None, first: int = 0
) -> Columns:
    """Return the scores of Docs as columns of a table, such as `pandas.DataFrame` takes.

    docs (Iterable[Doc]): Annotated by the pipeline. attr (str | Sequence[str]): Prefix of one calib pipe, or of several.
    unit (str): What gets a row: token, entity, sentence or document. ids (Sequence | None): Id of each Doc; None takes the ids
    that the reader of the texts stored. first (int): Number of the first Doc.
    RETURNS (dict): Name of a column of COLUMNS -> list of values, None for no value. Tokens, sentences and documents have a row
    for each pipe that scores them or their tokens; entities are the spans that the pipe scores.
    RAISES C001: there is no such unit.

    >>> import spacy
    >>> columns = score_rows([spacy.blank("en")("Ann smiles")], "calib", "token", ids=["a"])
    >>> {name: columns[name] for name in ("id", "start", "text", "score")}  # no calib pipe has scored the Doc
    {'id': ['a', 'a'], 'start': [0, 4], 'text': ['Ann', 'smiles'], 'score': [None, None]}
    """
    columns: Columns = {name: [] for name in get_columns(unit)}
    attrs, make_rows, names = (attr,) if isinstance(attr, str) else tuple(attr), _ROWS[unit], _NameCache()
    for number, doc in enumerate(docs):
        text_id = doc.user_data.get(ORIGIN, {}).get("id") if ids is None else ids[number]
        if text_id is not None and not isinstance(text_id, str):
            text_id = json.dumps(text_id, ensure_ascii=False, default=str)
        for prefix in attrs:
            rows = make_rows(doc, prefix, names)
            n_rows = len(rows["start"])
            rows |= {"id": [text_id] * n_rows, "doc": [first + number] * n_rows, "attr": [prefix] * n_rows}
            for name, column in columns.items():
                column += rows[name] if name in rows else [None] * n_rows
    return columns


def get_columns(unit: str) -> dict[str, tuple[str, str]]:
    """Return column -> (kind, meaning) of the rows of a unit. RAISES C001: there is no such unit."""
    if unit not in COLUMNS:
        raise calib_error("C001", name="unit", wanted=f"one of {', '.join(UNITS)}", given=repr(unit))
    return COLUMNS[unit]


def score_schema(unit: str) -> Any:
    """Return the Arrow schema of the rows of `score_rows`.

    unit (str): token, entity, sentence or document.
    RAISES C001: there is no such unit. C304: pyarrow is not installed.
    """
    columns = get_columns(unit)
    pa = load_pyarrow()
    kinds = {
        "text": pa.string(),
        "number": pa.int64(),
        "share": pa.float64(),
        "yes": pa.bool_(),
        "texts": pa.list_(pa.string()),
    }
    category = pa.struct([("label", pa.string()), ("score", pa.float64()), ("raw", pa.float64())])
    kinds["categories"] = pa.list_(category)
    return pa.schema([(name, kinds[kind]) for name, (kind, _) in columns.items()])


class _NameCache:
    """The strings of hashes, each looked up once."""

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[int, str | None]] = {}

    def look_up(self, kind: str, hashes: Sequence[int], name_at: Callable[[int], str]) -> list[str | None]:
        """Return the string of each hash, None for 0. kind (str): Whose hashes: "text", or an annotation. name_at: Index -> string."""
        names = self._by_kind.setdefault(kind, {0: None})
        for i, key in enumerate(hashes):
            if key not in names:
                names[key] = name_at(i) or None
        return [names[key] for key in hashes]


# Tokens


def _token_rows(doc: Doc, attr: str, names: _NameCache) -> Columns:
    if not scores_tokens(doc, attr):
        return {"start": []}
    columns: Any = doc.to_array(["IDX", "ORTH"]).reshape(-1, 2)
    starts, orths = columns[:, 0].tolist(), columns[:, 1].tolist()
    texts = [text or "" for text in names.look_up("text", orths, lambda i: doc[i].text)]
    ends = [start + len(text) for start, text in zip(starts, texts, strict=True)]
    return {"start": starts, "end": ends, "text": texts, **_read_token_values(doc, attr, names)}


def _read_token_values(doc: Doc, attr: str, names: _NameCache) -> Columns:
    """Return the label and the scores of each token."""
    matches = [match for match in rows_of(doc, attr) if match[0].annotation.unit == TOKEN]
    blocks = [(block, tokens.tolist(), rows.tolist()) for block, tokens, rows in matches]
    annotations = {block.annotation.name: block.annotation for block, _, _ in blocks}
    labels = {name: _read_labels(doc, annotation, names) for name, annotation in annotations.items()}
    # A token without a score gets the label of the last annotation.
    columns: Columns = {"label": [*labels.values()][-1] if labels else [None] * len(doc)}
    for block, tokens, rows in blocks:
        block_labels = labels[block.annotation.name]
        values = _read_block_values(block, rows, [block_labels[i] for i in tokens])
        if len(tokens) < len(doc):
            values = {
                name: _replace_at(columns.get(name, [None] * len(doc)), tokens, column) for name, column in values.items()
            }
        columns |= values
    return columns


def _replace_at(column: Sequence[Any], indices: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Return a column with some of its values replaced."""
    new_values = dict(zip(indices, values, strict=True))
    return [new_values.get(i, value) for i, value in enumerate(column)]


def _read_labels(doc: Doc, annotation: Annotation, names: _NameCache) -> list[str | None]:
    return names.look_up(annotation.name, annotation.hashes(doc).tolist(), lambda i: annotation.label_at(doc, i))


def _read_block_values(block: Block, rows: Sequence[int], labels: list[str | None]) -> Columns:
    """Return the labels and scores of some rows of a block. labels (list): Label of each of the rows."""
    entries = [None if label is None else block.entry_of(row, label) for row, label in zip(rows, labels, strict=True)]
    scores = {"score": block.columns["calibrated"], "raw": block.columns["raw"]}
    columns: Columns = {name: [None if i is None else values[i] for i in entries] for name, values in scores.items()}
    if block.columns["flag"] is not None:
        columns["flag"] = [block.flag_of(row, "flag") for row in rows]
    return {"label": labels, **columns}


# Entities and sentences


def _entity_rows(doc: Doc, attr: str, names: _NameCache) -> Columns:
    """Return the rows of entities and other scored spans, without those of sentences."""
    annotations = [annotation for annotation in annotations_of(doc, attr) if not annotation.arcs]
    spans = [
        (span, span.kb_id_ if annotation.spans_are_units else span.label_)
        for annotation in annotations
        for span in annotation.spans_on(doc)
    ]
    return {**_span_rows([span for span, _ in spans], attr), "label": [label or None for _, label in spans]}


def _span_rows(spans: Sequence[Span], attr: str) -> Columns:
    values = [span_values(span, attr) for span in spans]
    return {
        "start": [span.start_char for span in spans],
        "end": [span.end_char for span in spans],
        "text": [span.text for span in spans],
        "label": [span.label_ or None for span in spans],
        "score": [None if value is None else value.calibrated for value in values],
        "raw": [None if value is None else value.raw for value in values],
        "accept": [None if value is None or value.accept < 0 else bool(value.accept) for value in values],
    }


def _sentence_rows(doc: Doc, attr: str, names: _NameCache) -> Columns:
    """Return the rows of sentences; a text without sentence boundaries is one sentence."""
    if not len(doc) or not scores_tokens(doc, attr):
        return {"start": []}
    spans = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
    scores = _read_token_scores(doc, attr, names)
    return {**_span_rows(spans, attr), **_summarize_tokens([scores[span.start : span.end] for span in spans])}


def scores_tokens(doc: Doc, attr: str) -> bool:
    """Return whether a pipe scores tokens; True if it has written nothing on the Doc."""
    annotations = annotations_of(doc, attr)
    return not annotations or any(annotation.unit == TOKEN for annotation in annotations)


def _read_token_scores(doc: Doc, attr: str, names: _NameCache) -> Sequence[float | None]:
    return _read_token_values(doc, attr, names).get("score", [None] * len(doc))


def _summarize_tokens(scores: Sequence[Sequence[float | None]]) -> Columns:
    """Return number, mean and lowest score of tokens. scores: Scores of the tokens of each unit."""
    known_scores = [[score for score in unit_scores if score is not None] for unit_scores in scores]
    return {
        "tokens": [len(unit_scores) for unit_scores in scores],
        "mean": [sum(unit_scores) / len(unit_scores) if unit_scores else None for unit_scores in known_scores],
        "lowest": [min(unit_scores, default=None) for unit_scores in known_scores],
    }


# Documents


def _document_rows(doc: Doc, attr: str, names: _NameCache) -> Columns:
    text, tokens = doc.text, _summarize_tokens([_read_token_scores(doc, attr, names)])
    return {"start": [0], "end": [len(text)], "text": [text], **tokens, **_read_document_values(doc, attr)}


def _read_document_values(doc: Doc, attr: str) -> Columns:
    """Return the label and the scores of the whole Doc; the label is its top category even without scores."""
    block = document_block(doc, attr)
    if block is None:
        return {"label": [_find_category(doc, attr)]}
    raw = block.scores_of(0, raw=True)
    return {
        **_read_block_values(block, [0], [block.annotation.label_at(doc, 0) or None]),
        "accept": [doc_accept(doc, attr)],
        "cats": [[{"label": label, "score": score, "raw": raw[label]} for label, score in block.scores_of(0).items()]],
    }


def _find_category(doc: Doc, attr: str) -> str | None:
    for annotation in annotations_of(doc, attr):
        if annotation.unit != TOKEN:
            return annotation.label_at(doc, 0) or None
    return None


_MakeRows = Callable[[Doc, str, _NameCache], Columns]
_ROWS: dict[str, _MakeRows] = dict(zip(UNITS, (_token_rows, _entity_rows, _sentence_rows, _document_rows), strict=True))
