"""Reads tokens with tags (Hugging Face) and Docs (`Doc.to_json`), and names forms of training data that are not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CalibError, brief, calib_error
from .tool_exports import TextAnswers, TextSpan, answer_with_spans

_TAGS = ("ner_tags", "tags", "labels")  # keys of the tags of tokens
# End of a field's name by which a form that is not read is recognized -> what the form is, what to do.
_OTHER_FORMS = {
    "paragraphs": ("it is training data of spaCy 2", "make a .spacy file of it by `python -m spacy convert`"),
    "tokenized_text": (
        "it is training data of GLiNER, which lacks the text between the tokens",
        "write its tokens and tags as tokens and ner_tags, or its texts as .spacy",
    ),
    ".responses": ("it has the columns of an Argilla dataset on the Hub", "export the answers by dataset.records.to_json"),
}


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


def has_token_tags(record: dict[str, Any]) -> bool:
    """Return whether a record has a list of tokens and their tags, as data sets of Hugging Face."""
    return isinstance(record.get("tokens"), list) and any(key in record for key in _TAGS)


def read_tokens(record: dict[str, Any]) -> TextAnswers:
    """Read "tokens" and "ner_tags" ("tags", "labels") as spans of a text with spaces; tags may have a prefix such as B- or S-.

    RAISES ValueError: the tags are numbers, or there is not one for each token.
    """
    tokens, tags = record["tokens"], record[next(key for key in _TAGS if key in record)]
    if not all(isinstance(tag, str) for tag in tags):
        raise ValueError("its tags are numbers, whose names are not in the file, or no names: write the names in their stead")
    marks: list[TextSpan] = []
    start, continues = 0, False  # offset of the present token; whether the last token is in a span that may go on
    for token, tag in zip(tokens, tags, strict=True):
        prefix, _, label = tag.partition("-")
        if tag[1:2] != "-":  # no prefix, so neighbours with the same label are one span
            prefix = "I"
            label = "" if tag in ("O", "_") else tag
        if continues and label == marks[-1].label and prefix in "IEL":
            marks[-1] = marks[-1]._replace(end=start + len(token))
        elif label:
            marks.append(TextSpan(start, start + len(token), label))
        continues = bool(label) and prefix not in "ELSU"  # E and L: last token of a span, S and U: the only one
        start += len(token) + 1
    return answer_with_spans(" ".join(tokens), marks, {})


def unknown_form(file: Path, where: str, record: dict[str, Any]) -> CalibError:
    """Build the error for a record (at `where` in the file) of no known tool: C787 if its form can be converted, else C082."""
    for ending, (why, mend) in _OTHER_FORMS.items():
        if any(str(name).endswith(ending) for name in record):
            return calib_error("C787", path=file, why=why, mend=mend)
    return calib_error("C082", path=file, where=where.capitalize(), given=", ".join(map(str, record)) or "none")
