"""Reads gold files as Examples, as `spacy evaluate` does, each with the source document that it belongs to.

spaCy's reader loses the documents: with gold preprocessing, the Examples of sentences lack the user data of their Doc.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example

from ..annotations import REJECTED, Annotation, has_gold
from ..annotations.annotation import UNKNOWN
from ..errors.visible import shown_path
from ..pairs.documents import DOC, DOCUMENT, SENTENCE, SourceDocument
from ..pairs.keyed import digest
from ..pairs.seen_texts import TextUnits
from .contradictions import CONFLICTS
from .file_readers import gold_suffixes
from .keys import DOC_KEY


def make_examples(
    nlp: Language, references: Iterable[Doc | None], file: Path, gold_preproc: bool = False, arrays: Collection[str] = ()
) -> Iterator[Example]:
    """Yield the Examples of the gold Docs of a file. The user data of each gold Doc gets its source document (`document_of`).

    references (Iterable): The gold Docs in the order of the file, None for one to leave out. gold_preproc (bool): Whether each
    sentence becomes an Example, with gold tokens. arrays (Collection): Keys of arrays or lists in the user data of gold Docs,
    with a row for each token, which are copied to predicted Docs. RAISES ValueError and others: errors of spaCy.
    """
    corpus = Corpus(file, gold_preproc=gold_preproc)
    for number, reference in enumerate(references):  # None has a number, too
        if reference is None:
            continue
        conflicts = reference.user_data.pop(CONFLICTS, None)
        # spaCy's sentences lack span groups, so Docs with answers in these stay whole.
        is_whole = not gold_preproc or any(key.startswith((REJECTED, UNKNOWN)) for key in reference.spans)
        document = _document_in_file(reference, file, number)
        present_arrays = {key: reference.user_data[key] for key in arrays if key in reference.user_data}
        # Sentences get the names and values of their document.
        fields = {key: value for key, value in reference.user_data.items() if isinstance(value, (str, int, float))}
        if present_arrays:
            examples = _with_arrays(nlp, reference, present_arrays, by_sentence=not is_whole)
        else:
            make = corpus.make_examples if is_whole else corpus.make_examples_gold_preproc
            examples = make(nlp, [reference])
        for example in examples:
            example.reference.user_data.update({**fields, DOC_KEY: document})
            if conflicts is not None:
                example.reference.user_data[CONFLICTS] = conflicts
                conflicts = None  # the first of several sentences has got them
            yield example


def _document_in_file(doc: Doc, file: Path, number: int) -> SourceDocument:
    """Return the source document that a Doc's user data name; if they name none, the Doc counts as one, by number and file.

    An integer in the user data names a document of this file only, a string the same document in all files.
    """
    document = _named_document(doc)
    if document is None:
        return SourceDocument(_unit_of(doc), (shown_path(file), number))
    return SourceDocument(DOCUMENT, (shown_path(file), document)) if isinstance(document.key, int) else document


def _with_arrays(nlp: Language, reference: Doc, arrays: dict[str, Any], by_sentence: bool) -> Iterator[Example]:
    """Yield the Example of a gold Doc (reference), in which the predicted Doc has the gold tokens and gets the arrays.

    arrays (dict): Key in the user data -> array. by_sentence (bool): Yield one Example for each sentence, which gets the rows
    of its tokens; an array without a row for each token stays whole.
    """
    parts = reference.sents if by_sentence and reference.has_annotation("SENT_START") else [reference[:]]
    for part in parts:
        gold = part.as_doc() if by_sentence else reference
        words, spaces = [token.text for token in gold], [bool(token.whitespace_) for token in gold]
        predicted = Doc(nlp.vocab, words=words, spaces=spaces)
        for key, rows in arrays.items():
            fits = (isinstance(rows, (list, tuple)) or np.ndim(rows) > 0) and len(rows) == len(reference)
            predicted.user_data[key] = rows[part.start : part.end] if fits else rows
        yield Example(predicted, gold)


def document_of(example: Example) -> SourceDocument:
    """Return the source document in the user data of an Example's gold Doc; if there is none, a new document."""
    doc = example.reference
    return _named_document(doc) or SourceDocument(_unit_of(doc), _UniqueKey())


def from_files(files: Iterable[Iterable[Example]]) -> Iterator[Example]:
    """Yield the examples of several gold files, each with the number of its file; documents of two files are never the same."""
    for number, examples in enumerate(files):
        for example in examples:
            example.reference.user_data[DOC_KEY] = document_of(example)._replace(file=number)
            yield example


class _UniqueKey:
    """A key that equals no other, for a document of unknown origin."""


def _named_document(doc: Doc) -> SourceDocument | None:
    """Return the source document in the user data of a Doc, or one made from a text or integer there; None without."""
    value = doc.user_data.get(DOC_KEY)
    if isinstance(value, SourceDocument) or value is None:
        return value
    return SourceDocument(DOCUMENT, value) if isinstance(value, (str, int)) else None


def _unit_of(doc: Doc) -> str:
    """Return what a Doc of unknown origin counts as: SENTENCE if it has a single sentence start or no words, else DOC."""
    has_one_start = doc.has_annotation("SENT_START") and np.count_nonzero(doc.to_array(["SENT_START"]) == 1) == 1
    return SENTENCE if has_one_start or not doc.text.strip() else DOC


def visible_files(folder: Path, *suffixes: str) -> list[Path]:
    """Return the files with one of these suffixes in and below a folder, except hidden ones and those in hidden folders."""
    files = sorted(file for suffix in suffixes for file in folder.rglob(f"*{suffix}"))
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


def gold_files(folder: Path) -> list[Path]:
    """Return the gold files of one type in and below a folder: DocBins, else CoNLL-U, else a type of another package."""
    return next(filter(None, (visible_files(folder, suffix) for suffix in gold_suffixes())), [])


class TextWatch:
    """Records digests of gold Docs with `annotation` and of their sentences, to show later which texts a fit has seen."""

    def __init__(self, annotation: Annotation):
        self.annotation = annotation
        self._rows: list[tuple[int, int, int, bool]] = []  # digest, number of words, document, whether it is a whole text
        self._n_documents = 0

    def watch(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples unchanged, and record the digests of each."""
        for example in examples:
            doc = example.reference
            if has_gold(self.annotation, doc):
                parts = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
                for is_whole, part in ((True, doc[:]), *((False, sent) for sent in parts)):
                    self._rows.append((digest(part.text), len(part), self._n_documents, is_whole))
                self._n_documents += 1
            yield example

    def units(self) -> TextUnits:
        """Return what was recorded of each text so far: digest, number of words, document, and whether it is a whole text."""
        columns = zip(*self._rows, strict=True) if self._rows else ((), (), (), ())
        return TextUnits(*map(np.array, columns, (np.uint64, np.intp, np.intp, np.bool_)))


def texts_of(annotation: Annotation, examples: Iterable[Example]) -> TextUnits:
    """Return the digests of the gold Docs that have an annotation, and of their sentences."""
    watch = TextWatch(annotation)
    deque(watch.watch(examples), maxlen=0)  # runs through the examples without keeping them
    return watch.units()
