"""Finds the reader of a gold file by its suffix, in this package or among those that other packages register."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus

from ..errors import CalibError, brief, calib_error
from ..registry import entry_points_of, load_point
from .answered_docs import answered_docs
from .conllu import read_conllu
from .keys import DOC_KEY

FileReader = Callable[[Language, Path], Iterable[Doc]]  # (nlp, file) -> gold Docs with the vocab of nlp, in file order


def conllu_docs(nlp: Language, file: Path) -> Iterator[Doc]:
    """Yield the documents of a CoNLL-U file as gold Docs. RAISES C161: it cannot be read as CoNLL-U."""
    for document, doc in read_conllu(nlp.vocab, file):
        doc.user_data[DOC_KEY] = document  # read by `document_of`: folds and intervals are made by whole documents
        yield doc


# Readers of annotated documents. A folder is read by the first of these for which it has files.
DOCUMENT_READERS: dict[str, FileReader] = {
    ".spacy": lambda nlp, file: Corpus(file).read_docbin(nlp.vocab, [file]),
    ".conllu": conllu_docs,
}
ANSWER_READERS: dict[str, FileReader] = dict.fromkeys((".jsonl", ".jsonl.gz", ".json"), answered_docs)  # people's answers
ENTRY_POINTS = "spacy_calib_gold"  # of other packages: the name is the suffix, ".tsv" or ".tsv.gz", the value a FileReader


def added_readers() -> dict[str, EntryPoint]:
    """Return suffix -> entry point for the readers of other packages, which cannot replace those of this package."""
    points = sorted(entry_points_of(ENTRY_POINTS), key=lambda point: point.name)
    own_suffixes = {*DOCUMENT_READERS, *ANSWER_READERS}
    return {point.name: point for point in points if point.name.startswith(".") and point.name not in own_suffixes}


def gold_suffixes() -> tuple[str, ...]:
    """Return the suffixes of files of annotated documents: those of this package, then those of other packages."""
    return (*DOCUMENT_READERS, *added_readers())


def file_reader(file: Path) -> FileReader:
    """Return the reader of a gold file by its suffix. RAISES C053: there is none. C105: its package cannot be imported."""
    for suffix, reader in {**DOCUMENT_READERS, **ANSWER_READERS}.items():
        if file.name.endswith(suffix):
            return reader
    candidates = {suffix: point for suffix, point in added_readers().items() if file.name.endswith(suffix)}
    if candidates:
        return _load_reader(candidates[max(candidates, key=len)])  # ".tsv.gz" rather than ".gz"
    *suffixes, last = (*gold_suffixes(), *ANSWER_READERS)
    raise calib_error("C053", path=file, why=f"its name does not end in {', '.join(suffixes)} or {last}", mend=advise_on(file))


def advise_on(file: Path) -> str:
    """Return advice, for a message, on what to do with a file that is not a DocBin and that no reader can read."""
    try:
        with file.open("rb") as stream:
            is_json = stream.read(64).lstrip()[:1] in (b"{", b"[")
    except OSError:
        is_json = False
    if is_json:
        return "it looks like JSON: if a tool exported it, let its name end in .json or .jsonl"
    if file.suffix in (".spacy", ".bin", ".conllu", ".conll", ".iob", ".ner"):
        return "make it with `spacy convert`"
    return f"`spacy convert` reads no {file.suffix or 'such'} files either: export JSON or CoNLL-U from the tool that wrote it"


def _load_reader(point: EntryPoint) -> FileReader:
    """Return another package's reader with a check of what it yields. RAISES C105: it cannot be imported or is no function."""
    thing = f"The reader of {point.name} files"
    reader = load_point(point, thing)
    if not callable(reader):
        raise calib_error("C105", thing=thing, value=point.value, why=f"it is no function: {brief(repr(reader))}")

    def read_checked(nlp: Language, file: Path) -> Iterator[Doc]:
        """Yield the Docs of the reader. RAISES C748: it fails, or yields anything but Docs with the vocab of nlp."""
        try:
            for doc in reader(nlp, file):
                if not isinstance(doc, Doc) or doc.vocab is not nlp.vocab:
                    raise TypeError(f"it gives {type(doc).__name__}, not a Doc with the vocab of the pipeline")
                yield doc
        except CalibError:
            raise
        except Exception as error:
            raise calib_error("C748", path=file, value=point.value, why=f"{type(error).__name__}: {error}") from None

    return read_checked
