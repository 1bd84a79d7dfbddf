"""Convert Docs with scores into columns of a table, with a row for each token, entity, sentence or document.

A column has the name of an attribute without its prefix: the column `score` contains `._.<attr>_score`. Each calib pipe has its
own rows, with its prefix in the column `attr`, so that tables of all pipelines have the same columns and can be concatenated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from spacy.tokens import Doc, Span

from ...doc.attributes import doc_accept, doc_cats, doc_cats_raw, doc_values, span_values, token_flag
from ...doc.store import TokenValues, annotations_of, find_row
from ...optional import load_pyarrow
from .messages import calib_error

Columns = dict[str, list[Any]]
Row = dict[str, Any]

_CATEGORIES = "array<struct<label: string, score: double, raw: double>>"
# Column -> (type in Spark's notation, meaning). Columns are public: new ones may be appended, but no meaning changes.
_COMMON = {
    "id": ("string", "id of the text; null if it has none"),
    "attr": ("string", "prefix of the calib pipe"),
    "start": ("bigint", "offset of the first character in the text"),
    "end": ("bigint", "offset of the character after the last"),
    "text": ("string", "the characters from start to end"),
    "label": ("string", "predicted label; null if there is none, and for sentences"),
    "score": ("double", "calibrated probability that the label is right; null if there is none"),
    "raw": ("double", "the same before calibration"),
}
_ACCEPT = {"accept": ("boolean", "whether the score reaches the cut-off")}
_TOKENS = {
    "tokens": ("bigint", "number of tokens"),
    "mean": ("double", "mean score of the tokens"),
    "lowest": ("double", "lowest score of the tokens"),
}
COLUMNS = {
    "token": {**_COMMON, "flag": ("boolean", "whether the token may be in a missed entity")},
    "entity": {**_COMMON, **_ACCEPT},
    "sentence": {**_COMMON, **_ACCEPT, **_TOKENS},
    "document": {
        **_COMMON,
        **_ACCEPT,
        "cats": (_CATEGORIES, "all categories above the threshold, highest score first, each with label, score and raw"),
        **_TOKENS,
    },
}
UNITS = tuple(COLUMNS)


def score_rows(docs: Iterable[Doc], attr: str | Sequence[str], unit: str, *, ids: Sequence[Any] | None = None) -> Columns:
    """Return the scores of Docs as columns of a table, such as `pandas.DataFrame` takes.

    docs (Iterable[Doc]): Annotated by the pipeline. attr (str | Sequence[str]): Prefix of one calib pipe, or of several.
    unit (str): What gets a row: token, entity, sentence or document. ids (Sequence | None): Id of each Doc; None numbers them
    from 0. RETURNS (dict): Name of a column of COLUMNS -> list of values, None for no value. Each unit has a row for each pipe,
    but tokens and sentences have none for a pipe that scores whole documents, and entities are the spans that the pipe scores.
    RAISES C001: there is no such unit.

    >>> import spacy
    >>> columns = score_rows([spacy.blank("en")("Ann smiles")], "calib", "token", ids=["a"])
    >>> {name: columns[name] for name in ("id", "start", "text", "score")}  # no calib pipe has scored the Doc
    {'id': ['a', 'a'], 'start': [0, 4], 'text': ['Ann', 'smiles'], 'score': [None, None]}
    """
    columns: Columns = {name: [] for name in get_columns(unit)}
    attrs = (attr,) if isinstance(attr, str) else tuple(attr)
    for number, doc in enumerate(docs):
        text_id = number if ids is None else ids[number]
        for prefix in attrs:
            common = {"id": None if text_id is None else str(text_id), "attr": prefix}
            for row in _ROWS[unit](doc, prefix):
                row |= common
                for name, column in columns.items():
                    column.append(row.get(name))  # None for a value that the row lacks
    return columns


def get_columns(unit: str) -> dict[str, tuple[str, str]]:
    """Return column -> (type in Spark's notation, meaning) for the rows of a unit. RAISES C001: there is no such unit."""
    if unit not in COLUMNS:
        raise calib_error("C001", name="unit", wanted=f"one of {', '.join(UNITS)}", given=repr(unit))
    return COLUMNS[unit]


def score_schema(unit: str) -> Any:
    """Return the Arrow schema of the rows of `score_rows`, to write them as Parquet.

    unit (str): token, entity, sentence or document. RAISES C001: there is no such unit. C304: pyarrow is not installed.
    """
    columns, pa = get_columns(unit), load_pyarrow()
    category = pa.struct([("label", pa.string()), ("score", pa.float64()), ("raw", pa.float64())])
    types = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_()}
    types[_CATEGORIES] = pa.list_(category)
    return pa.schema([(name, types[kind]) for name, (kind, _) in columns.items()])


def _token_rows(doc: Doc, attr: str) -> Iterator[Row]:
    """Yield the row of each token; none if the calib pipe (`attr`: its prefix) scored whole documents."""
    for token, (label, values) in zip(doc, _read_tokens(doc, attr), strict=False):
        extent = {"start": token.idx, "end": token.idx + len(token), "text": token.text}
        yield {**extent, "label": label, **_score_columns(values), "flag": token_flag(token, attr)}


def _read_tokens(doc: Doc, attr: str) -> list[tuple[str | None, TokenValues | None]]:
    """Return (label, its scores) of each token, each None if missing; [] if the calib pipe `attr` scored whole documents."""
    annotations = annotations_of(doc, attr)
    if annotations and all(annotation.kind.of_documents for annotation in annotations):
        return []
    labels_and_scores = []
    last_annotation = annotations[-1] if annotations else None  # its label is that of a token without a row of scores
    for token in doc:
        block, row = find_row(token, attr) or (None, 0)  # block of scores, and row of the token in it; None without scores
        annotation = last_annotation if block is None else block.annotation
        label = None if annotation is None else annotation.label(token) or None
        values = None if block is None or label is None else block.values_of(row, label)
        labels_and_scores.append((label, values))
    return labels_and_scores


def _score_columns(values: TokenValues | None) -> Row:
    """Return the columns "score" and "raw"; {} for None."""
    return {} if values is None else {"score": values.calibrated, "raw": values.raw}


def _entity_rows(doc: Doc, attr: str) -> Iterator[Row]:
    """Yield the row of each entity, or other span that the calib pipe (`attr`: its prefix) scores."""
    for annotation in annotations_of(doc, attr):
        if annotation.kind.of_arcs:  # arcs of a parser are no spans
            continue
        for span in annotation.spans_on(doc):
            label = span.kb_id_ if annotation.kind.of_links else span.label_
            yield {**_span_row(span, attr), "label": label or None}


def _span_row(span: Span, attr: str) -> Row:
    """Return the columns start, end, text and label of a span, and score, raw and accept if the calib pipe `attr` scored it."""
    row = {"start": span.start_char, "end": span.end_char, "text": span.text, "label": span.label_ or None}
    values = span_values(span, attr)
    scores = {} if values is None else {"score": values.calibrated, "raw": values.raw, "accept": values.is_accepted}
    return {**row, **scores}


def _sentence_rows(doc: Doc, attr: str) -> Iterator[Row]:
    """Yield the row of each sentence (of the Doc, if it has none); yield nothing if the calib pipe `attr` scored documents."""
    spans = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
    if tokens := _read_tokens(doc, attr):
        for span in spans:
            yield {**_span_row(span, attr), **_summarize_tokens(tokens[span.start : span.end])}


def _summarize_tokens(tokens: Sequence[tuple[str | None, TokenValues | None]]) -> Row:
    """Return the columns "tokens", "mean" and "lowest", the last two None without scores. tokens: (label, scores) of each."""
    scores = [values.calibrated for _, values in tokens if values is not None]
    mean = sum(scores) / len(scores) if scores else None
    return {"tokens": len(tokens), "mean": mean, "lowest": min(scores, default=None)}


def _document_rows(doc: Doc, attr: str) -> Iterator[Row]:
    """Yield the row of the whole Doc. Its label is its top category, if the calib pipe with prefix `attr` scores categories."""
    labels = [annotation.label_at(doc, 0) for annotation in annotations_of(doc, attr) if annotation.kind.of_documents]
    scores, raw = doc_cats(doc, attr), doc_cats_raw(doc, attr) or {}
    cats = None if scores is None else [{"label": label, "score": scores[label], "raw": raw[label]} for label in scores]
    extent = {"start": 0, "end": len(doc.text), "text": doc.text, "label": (labels[0] or None) if labels else None}
    # For categories there are no token scores, but still a number of tokens.
    summary = {**_summarize_tokens(_read_tokens(doc, attr)), "tokens": len(doc)}
    values = _score_columns(doc_values(doc, attr))
    yield {**extent, **summary, **values, "accept": doc_accept(doc, attr), "cats": cats}


_ROWS: dict[str, Callable[[Doc, str], Iterator[Row]]] = {
    "token": _token_rows,
    "entity": _entity_rows,
    "sentence": _sentence_rows,
    "document": _document_rows,
}
