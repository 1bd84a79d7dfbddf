"""Gold files -> Examples as `spacy evaluate` reads them, each with the source document that it belongs to.

spaCy's own reader forgets documents: with gold preprocessing, sentences lose the user data of their Doc. Of what goes by, digests of
documents and sentences can be noted.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example

from ..annotations import REJECTED, Annotation, has_gold
from ..annotations.base import UNKNOWN
from ..errors import calib_error
from ..errors.visible import shown_path
from ..pairs.documents import DOC, DOCUMENT, SENTENCE, SourceDocument
from ..pairs.keyed import digest
from ..pairs.seen_texts import TextUnits
from ..types import Ints
from .conllu import with_joined_words
from .contradictions import CONFLICTS, reconcile
from .file_readers import ANSWER_READERS, file_reader, gold_suffixes
from .keys import DOC_KEY


@dataclass(frozen=True)
class GoldReader:
    """How files are read.

    gold_preproc (bool): Whether each sentence is an Example of its own, with gold tokens. doc_key (str | None): Key of
        the user data that must name the document; None reads "calib_document" where it is there. arrays (Collection):
        Keys of arrays or lists with a row for each token of the file; the predicted Doc gets them too.
    """

    gold_preproc: bool = False
    doc_key: str | None = None
    arrays: Collection[str] = ()

    def examples(self, nlp: Language, file: Path) -> Iterator[Example]:
        """The Examples of one file; `document_of` gives their documents.

        RAISES C053, C105: see `file_reader`. C160: a Doc without the key. C161: no CoNLL-U. C692 to C696: no answers. C748: see `added_readers`.
            ValueError and others: what spaCy says of the file.
        """
        docs = file_reader(file)(nlp, file)
        yield from self.examples_of(nlp, reconcile([list(docs)])[0] if file.suffix in ANSWER_READERS else docs, file)

    def examples_of(self, nlp: Language, references: Iterable[Doc | None], file: Path) -> Iterator[Example]:
        """The Examples of gold Docs. references: None for what takes no part. file (Path): Where they stand. RAISES C160: a Doc without the key."""
        examples = self._examples_of(nlp, references, file)
        return with_joined_words(examples, file) if file.suffix == ".spacy" else examples

    def _examples_of(self, nlp: Language, references: Iterable[Doc | None], file: Path) -> Iterator[Example]:
        corpus = Corpus(file, gold_preproc=self.gold_preproc)
        for number, reference in enumerate(references):
            if reference is None:
                continue
            conflicts = reference.user_data.pop(CONFLICTS, None)
            # Sentences have no span groups, in which answers stand.
            whole = not self.gold_preproc or any(key.startswith((REJECTED, UNKNOWN)) for key in reference.spans)
            make = corpus.make_examples if whole else corpus.make_examples_gold_preproc
            document = self._document(reference, file, number)
            arrays = {key: reference.user_data[key] for key in self.arrays if key in reference.user_data}
            # What the document is filed under holds for its sentences.
            filed = {key: value for key, value in reference.user_data.items() if isinstance(value, (str, int, float))}
            for example in self._with_arrays(nlp, reference, arrays) if arrays else make(nlp, [reference]):
                example.reference.user_data.update({**filed, DOC_KEY: document})
                if conflicts is not None:  # of a text with several sentences it stands on the first one
                    example.reference.user_data[CONFLICTS], conflicts = conflicts, None
                yield example

    def _document(self, doc: Doc, file: Path, number: int) -> SourceDocument:
        """The document of the Doc with this number in its file. Numbers name documents of one file, texts of all."""
        key = self.doc_key or DOC_KEY
        named = _named(doc, key)
        if self.doc_key is not None and named is None:
            raise calib_error(
                "C160",
                key=key,
                path=file,
                text=doc.text[:40],
                given="nothing" if key not in doc.user_data else type(doc.user_data[key]).__name__,
            )
        if named is None or isinstance(named.key, int):
            return SourceDocument(
                _unit_of(doc) if named is None else DOCUMENT, (shown_path(file), number if named is None else named)
            )
        return named

    def _with_arrays(self, nlp: Language, reference: Doc, arrays: dict[str, Any]) -> Iterator[Example]:
        parts = reference.sents if self.gold_preproc and reference.has_annotation("SENT_START") else [reference[:]]
        for part in parts:
            gold = part.as_doc() if self.gold_preproc else reference
            words, spaces = [token.text for token in gold], [bool(token.whitespace_) for token in gold]
            predicted = Doc(nlp.vocab, words=words, spaces=spaces)
            for key, rows in arrays.items():
                fits = (isinstance(rows, (list, tuple)) or np.ndim(rows) > 0) and len(rows) == len(reference)
                predicted.user_data[key] = rows[part.start : part.end] if fits else rows
            yield Example(predicted, gold)


def document_of(example: Example) -> SourceDocument:
    """The document that an Example belongs to, by its gold Doc's user data; one of its own where these name none."""
    doc = example.reference
    return _named(doc, DOC_KEY) or SourceDocument(_unit_of(doc), _Alone())


def from_files(files: Iterable[Iterable[Example]]) -> Iterator[Example]:
    """The examples of several files of gold. Documents of two files are two, and a fit can compare the files."""
    for number, examples in enumerate(files):
        for example in examples:
            example.reference.user_data[DOC_KEY] = document_of(example)._replace(file=number)
            yield example


class _Alone:
    """A key that no other document has."""


def _named(doc: Doc, key: str) -> SourceDocument | None:
    given = doc.user_data.get(key)
    if isinstance(given, SourceDocument) or given is None:
        return given
    return SourceDocument(DOCUMENT, given) if isinstance(given, (str, int)) else None


def _unit_of(doc: Doc) -> str:
    """What an unnamed Doc is to resampling: a sentence if it has one sentence start or no words, else "doc"."""
    if not doc.text.strip():
        return SENTENCE
    return SENTENCE if np.count_nonzero(doc.to_array(["SENT_START"]) == 1) == 1 and doc.has_annotation("SENT_START") else DOC


def visible_files(folder: Path, *suffixes: str) -> list[Path]:
    """The files in a folder and below whose names end so, but hidden ones and those in hidden folders."""
    files = sorted(file for suffix in suffixes for file in folder.rglob(f"*{suffix}"))
    return [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


def gold_files(folder: Path) -> list[Path]:
    """The gold files in a folder and below: its DocBins, or where it has none its CoNLL-U files, or those that an added reader reads."""
    return next(filter(None, (visible_files(folder, suffix) for suffix in gold_suffixes())), [])


class TextWatch:
    """Remembers which texts it has seen, as digests. annotation (Annotation): Only gold Docs with it count."""

    def __init__(self, annotation: Annotation):
        self.annotation = annotation
        self._digests = array("Q")
        self._words = array("q")
        self._documents = array("q")
        self._whole = array("b")
        self._n_documents = 0

    def over(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples, each noted as it passes."""
        for example in examples:
            doc = example.reference
            if has_gold(self.annotation, doc):
                parts = list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
                for whole, part in ((True, doc[:]), *((False, sent) for sent in parts)):
                    self._digests.append(digest(part.text))
                    self._words.append(len(part))
                    self._documents.append(self._n_documents)
                    self._whole.append(whole)
                self._n_documents += 1
            yield example

    def units(self) -> TextUnits:
        """What was seen so far."""
        return TextUnits(
            np.array(self._digests, dtype=np.uint64),
            np.array(self._words, dtype=np.intp),
            np.array(self._documents, dtype=np.intp),
            np.array(self._whole, dtype=bool),
        )


class Noted:
    """Counts each passing example's gold spans, and digests its text. n_gold (int): Sum of the counts taken so far."""

    def __init__(self, annotation: Annotation):
        self._annotation, self.n_gold = annotation, 0
        self._gold, self._digests = array("q"), array("Q")

    def over(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples, each noted as it passes."""
        for example in examples:
            self._gold.append(len(self._annotation.spans_on(example.reference)))
            self._digests.append(digest(example.reference.text))
            yield example

    def take(self) -> tuple[Ints, list[int]]:
        """(numbers of gold spans, digests) of the examples since the last `take`."""
        gold, digests = np.array(self._gold, dtype=np.intp), self._digests.tolist()
        self._gold, self._digests = array("q"), array("Q")
        self.n_gold += int(gold.sum())
        return gold, digests


def texts_of(annotation: Annotation, examples: Iterable[Example]) -> TextUnits:
    """The texts of the gold Docs with this annotation."""
    watch = TextWatch(annotation)
    deque(watch.over(examples), maxlen=0)
    return watch.units()
