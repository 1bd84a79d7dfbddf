"""Reads CoNLL-U files as gold Docs whose text is the text of the file.

spaCy's converter makes the text of a sentence from its syntactic words. Words that do not spell their multiword token (French
"du" is annotated as "de" and "le") are merged here, with the labels of `spacy convert --merge-subtokens`; "do", "n't" stay two.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from pathlib import Path

import numpy as np
from spacy.parts_of_speech import IDS
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.training.converters import conllu_to_docs
from spacy.vocab import Vocab

from ..errors import WARNINGS, brief, calib_error
from ..errors.visible import shown_path
from ..pairs.documents import DOCUMENT, SENTENCE, SourceDocument

_NEW_DOCUMENT = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(?P<id>.*\S))?")
_TEXT = re.compile(r"#\s*text\s*=\s?(?P<text>.*)")
_MULTIWORD = re.compile(r"(\d+)-(\d+)$")
_NO_SPACE = "SpaceAfter=No"
# An entity's tag in the last column; the number after a label counts mentions.
_ENTITY = re.compile(r"(?:(?<=\|)|^)(?P<tag>(?:name|NE)=[BILU]-)(?P<label>[^|\s]+?)(?:-\d+)?(?=\||$)")
_ID, _FORM, _UPOS, _FEATS, _HEAD, _MISC, _N_COLUMNS = 0, 1, 3, 5, 6, 9, 10  # columns of a row
# Minimum number and share of adjacent words that the tokenizer does not split, for a warning: English has .0025, French .03.
_MIN_JOINED, _MIN_SHARE_JOINED = 10, 0.01
Row = list[str]


def read_conllu(vocab: Vocab, file: Path) -> Iterator[tuple[SourceDocument, Doc]]:
    """Yield (document, its Doc) for each document of a CoNLL-U file (`# newdoc`), or for each sentence if it marks none.

    Warns (CW60) of sentences whose words differ from their `# text` comment. RAISES C161: it is not CoNLL-U, or not UTF-8.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise calib_error("C161", path=file, why=str(error), mend="save it as UTF-8") from None
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text) if re.search(r"^\d", block, re.MULTILINE)]
    names: dict[str, str] = {}  # name in capitals, in place of an entity label that spaCy's converter would cut off -> label
    try:
        restored = [_restore_text(block, names) for block in blocks]
        new_text = "\n\n".join(new_block for new_block, _ in restored)
        sentences = list(conllu_to_docs(new_text, n_sents=1, merge_subtokens=True, no_print=True)) if blocks else []
    except Exception as error:
        why, mend = _fault_in(text, error)
        raise calib_error("C161", path=file, why=why, mend=mend) from None
    other_texts = [other for _, other in restored if other]  # of the sentences whose words differ from their comment
    if other_texts:
        n, first = f"{len(other_texts):,}", brief(other_texts[0])
        warnings.warn(WARNINGS["CW60"].format(n=n, of=f"{len(blocks):,}", path=file, text=first), stacklevel=2)
    pairs = zip(_documents_of(file, blocks), sentences, strict=True)
    documents = [(document, [doc for _, doc in parts]) for document, parts in groupby(pairs, lambda pair: pair[0])]
    # The converter's Docs have a vocab of their own; a DocBin moves them to `vocab`.
    doc_bin = DocBin(docs=[Doc.from_docs(parts) for _, parts in documents], store_user_data=True)
    for (document, _), doc in zip(documents, doc_bin.get_docs(vocab), strict=True):
        if names and doc.ents:
            doc.ents = [Span(doc, ent.start, ent.end, label=names.get(ent.label_, ent.label_)) for ent in doc.ents]
        yield document, doc


def _fault_in(text: str, error: Exception) -> tuple[str, str]:
    """Return (first fault of a text that is no CoNLL-U, with its line; what to do). error: Reported if no other is found."""
    lines = text.split("\n")
    sentence_start = 0  # index of the present sentence's first line
    for number, line in enumerate(lines, 1):
        row = line.rstrip("\r").split("\t")
        if not line.strip():
            sentence_start = number  # the index of the next line, as numbers begin at 1
        if not line.strip() or line.startswith("#"):
            continue
        if len(row) != _N_COLUMNS:
            why = f"line {number} has {len(row)} columns, not {_N_COLUMNS}"
            return why, "write ten columns between tabs, _ for an empty one"
        ids = [line.split("\t")[0] for line in takewhile(str.strip, lines[sentence_start:])]  # of the whole sentence
        bounds = _MULTIWORD.match(row[_ID])
        if bounds and not {str(word) for word in range(int(bounds[1]), int(bounds[2]) + 1)}.issubset(ids):
            return f"line {number} has a multiword token {bounds[0]} without its words", "write its words on the next lines"
        if not row[_ID].isdecimal():  # a multiword token or an empty node ("8.1") has no head
            continue
        n_words = sum(map(str.isdecimal, ids))
        if row[_UPOS] not in (*IDS, "_"):
            why = f"line {number} has the UPOS {brief(row[_UPOS])!r}"
            return why, "write one of Universal Dependencies there, and other tags as XPOS"
        if row[_FEATS] != "_" and any("=" not in part for part in row[_FEATS].split("|")):
            return f"line {number} has the features {brief(row[_FEATS])!r}", "write Name=Value there, several between |, or _"
        if row[_HEAD] != "_" and not (row[_HEAD].isdecimal() and int(row[_HEAD]) <= n_words):
            why = f"line {number} has the head {brief(row[_HEAD])!r} in a sentence of {n_words} words"
            return why, "write the number of a word there, or 0"
    return (str(error).splitlines() or [type(error).__name__])[0], "save it as UTF-8, with ten columns between tabs"


def _documents_of(file: Path, blocks: Iterable[str]) -> Iterator[SourceDocument]:
    """Yield the document of each sentence (a block of lines). A sentence before the first `# newdoc` is its own document."""
    document, n_documents = None, 0
    for number, block in enumerate(blocks):
        for mark in filter(None, map(_NEW_DOCUMENT.match, block.splitlines())):
            n_documents += 1
            document = SourceDocument(DOCUMENT, mark["id"] or (shown_path(file), n_documents))
        yield document or SourceDocument(SENTENCE, (shown_path(file), number))


def _restore_text(block: str, names: dict[str, str]) -> tuple[str, str]:
    """Rewrite the lines of a sentence (`block`) so that spaCy's converter keeps its text and its entity labels.

    Spaces are those of the `# text` comment. A multiword token's row is left out if its words spell it, as "do" and "n't" do.
    An entity label that the converter would cut off becomes a name in capitals. names (dict): Name -> label; gets new ones.
    RETURNS (tuple): The new lines without comments; the text of the comment if the sentence has other words, else "".
    RAISES ValueError: a row has not ten columns, or a multiword token lacks its words.
    """
    lines = block.splitlines()
    text = next((comment["text"].strip() for comment in map(_TEXT.match, lines) if comment), "")
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    if any(len(row) != _N_COLUMNS for row in rows):
        raise ValueError(f"a row has another number of columns than {_N_COLUMNS}")
    for row in rows:
        row[_MISC] = _ENTITY.sub(lambda match: _capital_name(match, names), row[_MISC])
    last_by_first = {int(bounds[1]): int(bounds[2]) for row in rows if (bounds := _MULTIWORD.match(row[_ID]))}
    part_ids = {number for first, last in last_by_first.items() for number in range(first, last + 1)}  # in multiword tokens
    words = {int(row[_ID]): row for row in rows if row[_ID].isdecimal()}
    # The rows that make up the text: multiword tokens, and words that are in none.
    tokens = [row for row in rows if _MULTIWORD.match(row[_ID]) or (row[_ID].isdecimal() and int(row[_ID]) not in part_ids)]
    agrees = not text or _set_spaces(tokens, text)
    split_tokens = []  # multiword tokens that their words spell: `_split` gives the words its letters and spaces
    for row in tokens:
        if (bounds := _MULTIWORD.match(row[_ID])) and _split(row, _parts(words, bounds)):
            split_tokens.append(row)
    new_rows = ["\t".join(row) for row in rows if not any(row is token for token in split_tokens)]  # rows may be equal
    return "\n".join(new_rows), "" if agrees else text


def _capital_name(match: re.Match[str], names: dict[str, str]) -> str:
    """Return an entity's tag and label from `match`. A label not in capitals becomes a name, which is added to `names`."""
    label = match["label"]
    if re.fullmatch("[A-Z_]+", label):
        return f"{match['tag']}{label}"
    new_name = f"CALIB_{'X' * (len(names) + 1)}_"  # without digits, which the converter would cut off
    capital_name = next((name for name, full_label in names.items() if full_label == label), new_name)
    names[capital_name] = label
    return f"{match['tag']}{capital_name}"


def _parts(words: dict[int, Row], bounds: re.Match[str]) -> list[Row]:
    """Return the rows of a multiword token's words (first and last number: `bounds`). RAISES ValueError: a word is missing."""
    numbers = range(int(bounds[1]), int(bounds[2]) + 1)
    if not numbers or not words.keys() >= set(numbers):
        raise ValueError(f"a multiword token {bounds[0]} without its words")
    return [words[number] for number in numbers]


def _set_spaces(tokens: Sequence[Row], text: str) -> bool:
    """Set whether a space follows each token but the last, as in `text`. RETURNS (bool): Whether the tokens spell the text."""
    starts, end = [], 0
    for token in tokens:
        start = len(text) - len(text[end:].lstrip())  # after white space
        if not text.startswith(token[_FORM], start):
            return False
        starts.append(start)
        end = start + len(token[_FORM])
    for token, start, following in zip(tokens, starts, starts[1:], strict=False):
        _set_space(token, following > start + len(token[_FORM]))
    return not text[end:].strip()


def _set_space(row: Row, follows: bool) -> None:
    """Set whether a space follows the word of a row, by SpaceAfter=No in its column MISC; other values there stay."""
    has_space = _NO_SPACE not in row[_MISC]
    if follows != has_space:
        other_fields = [part for part in row[_MISC].split("|") if part not in (_NO_SPACE, "_")]
        row[_MISC] = "|".join(other_fields if follows else [*other_fields, _NO_SPACE]) or "_"


def _split(token: Row, parts: Sequence[Row]) -> bool:
    """Give the words of a multiword token (`parts`) its letters and spaces if they spell it. RETURNS: Whether they do.

    Case and the form of apostrophes may differ.
    """
    form, joined = token[_FORM], "".join(part[_FORM] for part in parts)
    plain_form, plain_joined = (word.replace("\u2019", "'").casefold() for word in (form, joined))
    if len(joined) != len(form) or plain_joined != plain_form:
        return False
    end = 0
    for part in parts:
        start, end = end, end + len(part[_FORM])
        part[_FORM] = form[start:end]
        _set_space(part, part is parts[-1] and _NO_SPACE not in token[_MISC])
    return True


def warn_if_contractions_split(examples: Iterable[Example], file: Path) -> Iterator[Example]:
    """Yield the examples of a DocBin unchanged; after the last one warn (CW62) if their contractions were split into words.

    In such gold, as `spacy convert` writes it, many words follow each other without a space where the tokenizer sees one word.
    """
    n_words = n_spaces = n_joined = 0
    first_joined = ""
    for example in examples:
        words = list(example.reference)
        spaces = example.reference.to_array(["SPACY"]).reshape(-1)
        starts = {token.idx for token in example.predicted} if len(words) else set()
        for i in np.flatnonzero(spaces[:-1] == 0).tolist():
            word, following = words[i], words[i + 1]
            if word.text[-1:].isalpha() and following.text[:1].isalpha() and following.idx not in starts:
                n_joined += 1
                first_joined = first_joined or word.text + following.text
        n_words, n_spaces = n_words + len(words), n_spaces + int(spaces.sum())
        yield example
    has_spaces = 2 * n_spaces > n_words  # in languages without spaces between words, joined words show nothing
    if has_spaces and n_joined >= max(_MIN_JOINED, _MIN_SHARE_JOINED * n_words):
        share = f"{100 * n_joined / n_words:.1f}"
        warnings.warn(WARNINGS["CW62"].format(share=share, path=file, first=brief(first_joined)), stacklevel=2)
