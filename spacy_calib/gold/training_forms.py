"""Reads common formats of training data as answers about whole texts.

- spaCy's training data: `[text, {"entities": [[0, 4, "PERSON"]], "cats": {"A": 1}}]`, or one object `{"text": ..., "entities":
  ...}`; a list of such lists, the lines of a file, or the "annotations" of NER Annotator.
- `Doc.to_json`: the Doc itself.
- Hugging Face: `{"tokens": ["Anna", "left"], "ner_tags": ["B-PER", "O"]}`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import brief, calib_error
from .tool_exports import TextAnswers, TextSpan, answer_with_spans, as_list

TAGS = {"ner_tags", "tags", "labels"}  # keys of the tags of tokens
_RELATIONS = ("relations", "links", "heads", "deps")


def read_training(record: dict[str, Any]) -> TextAnswers:
    """Read a record of spaCy's training data: "text", "entities" and "cats". Relations are not read, but counted as skipped."""
    spans = as_list(record.get("entities"))
    bounds = [(span["start"], span["end"], span["label"]) if isinstance(span, dict) else span[:3] for span in spans]
    marks = [TextSpan(*bound) for bound in bounds]
    cats = record.get("cats") or {}
    if isinstance(cats, dict):
        values: dict[str, bool | None] = {str(name): bool(value > 0.5) for name, value in cats.items()}
    else:
        values = dict.fromkeys(as_list(cats), True)
    relations = {key: record[key] for key in _RELATIONS if isinstance(record.get(key), (list, dict)) and record[key]}
    skipped = Counter({key: len(value) for key, value in relations.items()})
    return replace(answer_with_spans(record["text"], marks, {}), cats=values, skipped=skipped)


def is_doc_json(value: Any) -> bool:
    """Return whether a JSON value is a Doc from `Doc.to_json`, whose tokens have offsets but no text."""
    tokens = value.get("tokens") if isinstance(value, dict) and isinstance(value.get("text"), str) else None
    return isinstance(tokens, list) and all(
        isinstance(token, dict) and {"start", "end"} == token.keys() & {"start", "end", "text"} for token in tokens
    )


def doc_from_json(nlp: Language, file: Path, where: str, value: dict[str, Any]) -> Doc:
    """Return the Doc of a value from `Doc.to_json`. where (str): Its place in the file. RAISES C692: spaCy cannot read it."""
    try:
        return Doc(nlp.vocab).from_json(value)
    except Exception as error:
        raise calib_error("C692", path=file, why=f"{where} is no Doc ({brief(error, 160)})") from None


def read_tokens(record: dict[str, Any]) -> TextAnswers:
    """Read "tokens" and "ner_tags" ("tags", "labels") as spans of a text with spaces; tags may have a prefix such as B- or S-.

    RAISES ValueError: the tags are numbers, or there is not one for each token.
    """
    tokens, tags = record["tokens"], record[next(key for key in ("ner_tags", "tags", "labels") if key in record)]
    if not all(isinstance(tag, str) for tag in tags):
        raise ValueError("its tags are numbers, whose names are not in the file, or no names: write the names in their stead")
    marks: list[TextSpan] = []
    start, continues = 0, False  # of the present token: its offset, and whether it may continue the last span
    for token, tag in zip(tokens, tags, strict=True):
        prefix, _, label = tag.partition("-") if tag[1:2] == "-" else ("I", "", "" if tag in ("O", "_", "") else tag)
        if continues and label == marks[-1].label and prefix in "IEL":
            marks[-1] = marks[-1]._replace(end=start + len(token))
        elif label:
            marks.append(TextSpan(start, start + len(token), label))
        continues = bool(label) and prefix not in "ELSU"  # E and L: last token of a span, S and U: the only one
        start += len(token) + 1
    return answer_with_spans(" ".join(tokens), marks, {})
