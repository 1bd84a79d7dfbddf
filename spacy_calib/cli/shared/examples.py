"""Files of gold and of texts -> Examples, one by one, and the pipes that run over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import CalibError, calib_error
from ...errors.visible import shown_path
from ...pairs.progress import UNREPORTED, Progress
from ...pipe.loading import reason, trained_pipes
from .command import check_option
from .records import FIELDS, KEYED, TEXT_SUFFIXES, Fields, is_gold, read_records, readable_suffixes, suffix_of, unreadable
from .session import watched

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example
    from tqdm import tqdm

Read = TypeVar("Read")
Step = TypeVar("Step")


@dataclass(frozen=True)
class Pass:
    """How a pipeline runs over texts.

    n_process (int): Worker processes. silent (bool): Whether there is no progress bar. what (str): Stands beside it. gold (bool): Whether there may be gold among
        the texts, which is read at once, see `doc.zones.in_zones`.
    """

    n_process: int = 1
    silent: bool = True
    what: str = "Scoring"
    gold: bool = True


def data_files(path: Path) -> list[Path]:
    """The gold files at a path, see `gold.reading.gold_files`; in a folder without them the answers of people, see `gold.answer_files`.

    RAISES C051: the path does not exist. C052: a folder without such files. C081: texts without gold. C053, C105: see `file_reader`.
    """
    from ...gold.file_readers import ANSWER_READERS, check_bytes, file_reader, gold_suffixes
    from ...gold.reading import gold_files

    if not path.exists():
        raise calib_error("C051", path=path)
    if path.is_dir():
        files = gold_files(path) or sorted(file for suffix in ANSWER_READERS for file in path.glob(f"[!.]*{suffix}"))
        if not files and any(suffix_of(file) in readable_suffixes() for file in path.iterdir()):
            raise calib_error("C081", path=path)
        if not files:
            raise calib_error("C052", path=path)
        return files
    if not path.name.endswith((*gold_suffixes(), *ANSWER_READERS)) and suffix_of(path) in readable_suffixes():
        check_bytes(path)
        raise calib_error("C081", path=path)
    file_reader(path)
    return [path]


def read_examples(
    nlp: Language,
    path: Path,
    gold_preproc: bool,
    doc_key: str | None = None,
    *,
    more: Sequence[Path] = (),
    silent: bool = True,
) -> list[Example]:
    """The examples of a gold file or a folder of them, as `spacy evaluate` reads them; see `gold.reading.GoldReader`.

    What several files or people say of the same text is merged when all is read, see `gold.contradictions`.

    more (Sequence[Path]): Further gold. silent (bool): Whether there is no count of the documents read so far (on a terminal only).
    RAISES C051 to C053: see `data_files`; or a file is no DocBin, or holds no documents. C160, C161, C692 to C696: see `read_gold`. C690: texts
        that were labelled because their labels were doubtful, as all that is learned or estimated takes gold for a random sample.
    """
    from ...gold.contradictions import reconcile
    from ...gold.keys import DRAWN_KEY
    from ...gold.reading import from_files
    from ...gold.tool_exports import BY_DOUBT

    paths = [path, *more]
    files = [(number, file) for number, folder in enumerate(paths) for file in data_files(folder)]
    docs = [_read_docs(nlp, file, silent) for _, file in files]
    for number, folder in enumerate(paths):
        of_path = [doc for (place, _), of_file in zip(files, docs, strict=True) if place == number for doc in of_file]
        if not of_path:
            raise calib_error("C052", path=folder)
        doubtful = sum(doc.user_data.get(DRAWN_KEY) == BY_DOUBT for doc in of_path)
        if doubtful:
            raise calib_error("C690", n=f"{doubtful:,}", of=f"{len(of_path):,}", path=folder)
    by_path: list[list[Example]] = [[] for _ in paths]
    for (number, file), references in zip(files, reconcile(docs), strict=True):
        by_path[number] += _make_examples(nlp, references, file, gold_preproc, doc_key)
    return list(from_files(by_path)) if more else by_path[0]


def read_gold(nlp: Language, file: Path, gold_preproc: bool, doc_key: str | None) -> Iterator[Example]:
    """The examples of one gold file, one by one, with the arrays that the calib pipes of the pipeline read from `Doc.user_data`.

    RAISES C053, C747: the file cannot be read. C160: a Doc names no document under the key. C161: no CoNLL-U.
        C692 to C696: no answers of people. C105, C748: a reader that a package adds cannot be used, or fails.
    """
    return _make_examples(nlp, _stream_docs(nlp, file), file, gold_preproc, doc_key)


def _read_docs(nlp: Language, file: Path, silent: bool) -> list[Doc]:
    with progress(f"Reading {shown_path(Path(file.name))}", silent) as bar:
        return [doc for doc in _stream_docs(nlp, file) if not bar.update()]


def _stream_docs(nlp: Language, file: Path) -> Iterator[Doc]:
    from ...gold.file_readers import advise_on, check_entities, file_reader

    if not file.stat().st_size:
        code = "C053" if file.suffix == ".spacy" else "C747"
        raise calib_error(code, path=file, why="it is empty", mend=advise_on(file))
    with _faults_of(file):
        yield from (check_entities(doc, file) for doc in file_reader(file)(nlp, file))


def _make_examples(
    nlp: Language, references: Iterable[Doc | None], file: Path, gold_preproc: bool, doc_key: str | None
) -> Iterator[Example]:
    from ...gold.reading import GoldReader
    from ...pipe.component import Calibrator

    sources = [pipe.source for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    arrays = tuple(dict.fromkeys(key for source in sources for key in source.user_data_keys))
    with _faults_of(file):
        yield from GoldReader(gold_preproc, doc_key, arrays).examples_of(nlp, references, file)


@contextmanager
def _faults_of(file: Path) -> Iterator[None]:
    """RAISES C053: whatever else spaCy raises for a file."""
    from ...gold.file_readers import advise_on

    try:
        yield
    except CalibError:
        raise
    except Exception as error:
        raise calib_error("C053", path=file, why=reason(error), mend=advise_on(file)) from None


def run_pipes(
    nlp: Language, examples: Iterable[Example], names: Sequence[str], *, silent: bool, what: str, n_process: int = 1
) -> Iterator[Example]:
    """Run the named pipes over the predicted Docs in batches, with a progress bar; yield examples when their Docs are ready."""
    total = len(examples) if isinstance(examples, Sized) else None
    with progress(what, silent, total) as bar:
        yield from _run(nlp, examples, names, bar, n_process)


def progress(what: str, silent: bool, total: int | None = None) -> tqdm:
    """A progress bar, on a terminal only. what (str): Stands beside it."""
    from tqdm import tqdm

    return tqdm(total=total, desc=what, unit="doc", disable=silent or None)


def shown(steps: Iterable[Step], what: str, silent: bool) -> Iterable[Step]:
    """The steps, with a progress bar on a terminal. what (str): Stands beside it."""
    from tqdm import tqdm

    bar: Iterable[Step] = tqdm(steps, desc=what, disable=silent or None)
    return bar


@contextmanager
def share_bar(silent: bool) -> Iterator[Progress]:
    """A progress bar, on a terminal only, for a computation that reports the share of it that is done, and its stage."""
    from tqdm import tqdm

    look = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}"
    with tqdm(total=1.0, bar_format=look, miniters=0, disable=silent or None) as bar:

        def report(share: float, stage: str) -> None:
            bar.update(max(0.0, share - bar.n))
            if bar.desc != stage:
                bar.set_description_str(stage)

        yield UNREPORTED if bar.disable else Progress(report)


def _run(nlp: Language, examples: Iterable[Example], names: Sequence[str], bar: tqdm, n_process: int) -> Iterator[Example]:
    to_run, kept = itertools.tee(examples)
    with nlp.select_pipes(enable=list(names)), watched(n_process), trained_pipes(nlp, names):
        docs = nlp.pipe((example.predicted for example in to_run), n_process=n_process)
        for example, doc in zip(kept, docs, strict=True):
            example.predicted = doc
            yield example
            bar.update()


def read_through(
    nlp: Language, examples: Iterable[Example], names: Sequence[str], read: Callable[[Iterator[Example]], Read], how: Pass
) -> Iterator[Read]:
    """Run the named pipes as `run_pipes` does, over any number of texts: what is read of them is given some texts after the others, and their Docs are
    let go, with the words that only they brought.

    examples (Iterable[Example]): They make their Docs when they are asked for them. read (Callable): Takes from examples what is kept of them; strings
        and numbers, nothing of a Doc.
    """
    from ...doc.zones import in_zones

    with progress(how.what, how.silent) as bar:
        yield from in_zones(
            nlp,
            examples,
            lambda some: read(_run(nlp, some, names, bar, how.n_process)),
            n_process=how.n_process,
            whole=how.gold,
        )


def text_files(path: Path, fields: Fields = FIELDS) -> list[Path]:
    """The files with texts at a path.

    fields (Fields): What text and id are called in them. RAISES C051: the path does not exist. C056: a column is named, and no file has columns, or keys.
        C073: a folder without such files, or a file of another kind.
    """
    from ...gold.reading import gold_files

    if not path.exists():
        raise calib_error("C051", path=path)
    if not path.is_dir():
        files = [path] if suffix_of(path) in readable_suffixes() else []
    else:
        found = (file for suffix in TEXT_SUFFIXES for file in path.rglob(f"*{suffix}"))
        plain = (file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts))
        files = sorted([*filter(is_gold, gold_files(path)), *plain])
    if not files:
        raise calib_error("C073", path=path, suffixes=", ".join(readable_suffixes()))
    if not any(suffix_of(file) in KEYED for file in files):
        kinds = ", ".join(sorted({suffix_of(file) for file in files}))
        check_option("--columns", fields == FIELDS, f"left out for files without columns ({kinds})", "it")
    return files


def holds_gold(path: Path) -> bool:
    """Whether there are gold files at a path, whose Docs are read as a whole. RAISES C051, C073: see `text_files`."""
    return any(map(is_gold, text_files(path)))


def stream_examples(
    nlp: Language,
    path: Path,
    *,
    gold_preproc: bool = False,
    doc_key: str | None = None,
    required: bool = True,
    key: str | None = None,
    fields: Fields = FIELDS,
    wanted: Container[int] | None = None,
) -> Iterator[Example]:
    """The examples of all files at a path, one by one: those of a gold file as `read_examples` reads them, the others without gold.

    required (bool): False lets there be no documents. key (str | None): Of JSON Lines, whose value the origin of a text keeps, see `gold.keys`.
    fields (Fields): What text and id are called in JSON Lines and Parquet. wanted (Container[int] | None): Numbers of the texts to be given, from 0: of
        the others no Docs are made. None gives all.
    RAISES C051, C073: see `text_files`. C053, C074, C160, C161, C304, C440 to C442: a file cannot be read.
        C052: there are no documents.
    """
    n_examples = 0
    files = text_files(path)
    for file in files:
        check_lines(file, fields)
    for file in files:
        named = {"file": shown_path(file.relative_to(path))} if len(files) > 1 else {}
        has_gold = is_gold(file)
        held: Iterator[Any] = read_gold(nlp, file, gold_preproc, doc_key) if has_gold else read_texts(file, key, fields)
        for one in held:
            if wanted is None or n_examples in wanted:
                yield one if has_gold else _example_of(nlp, file, one[0], {**named, **one[1]})
            n_examples += 1
    if required and not n_examples:
        raise calib_error("C052", path=path)


def _example_of(nlp: Language, file: Path, text: str, origin: dict[str, Any]) -> Example:
    """RAISES C448: the text is longer than nlp.max_length. C074: no Doc can be made of it."""
    from spacy.training import Example

    from ...gold.keys import DOC_KEY, ORIGIN
    from ...pairs.documents import TEXT, SourceDocument

    if len(text) > nlp.max_length:
        raise calib_error("C448", line=origin["line"], path=file, n=f"{len(text):,}", most=f"{nlp.max_length:,}")
    try:
        example = Example(nlp.make_doc(text), nlp.make_doc(text))
    except ValueError as error:
        raise unreadable(file, reason(error)) from None
    example.reference.user_data[ORIGIN] = origin
    example.reference.user_data[DOC_KEY] = SourceDocument(TEXT, (shown_path(file), origin["line"]))
    return example


def check_lines(file: Path, fields: Fields = FIELDS) -> None:
    """Read a file of plain texts to its end, so that a fault is found before the first text is scored. A FIFO, which can be read once only, is left alone.

    RAISES C074, C304, C440 to C442: see `read_records`.
    """
    if not is_gold(file) and file.is_file():
        for _ in read_texts(file, fields=fields):
            pass


def read_texts(file: Path, key: str | None = None, fields: Fields = FIELDS) -> Iterator[tuple[str, dict[str, Any]]]:
    """The texts of a file, each with its "line" (from 1; of Parquet its row), and the "id" and "meta" of its record; empty ones, and null, are left out.

    key (str | None): Of the records, or of their "meta", whose value is given too, see `gold.keys`; None where a record has none.
    fields (Fields): What text and id are called there. RAISES C074, C304, C440 to C442: see `read_records`.
    """
    for number, record in read_records(file, fields, key):
        if record["text"].strip():
            yield record["text"], origin_of(number, record, key)


def values_in(path: Path, key: str, fields: Fields = FIELDS) -> Iterator[tuple[Path, int, Any]]:
    """(file, line, what stands there under a key) of all plain texts at a path, so that it is looked at before the work begins. Gold, and a FIFO, which
    can be read once only, are looked at as they come, and so is all where the key is a registered function. RAISES C074: see `read_texts`.
    """
    from ...calibration.registered import REGISTRIES
    from ...gold.keys import IN_LINE

    for file in text_files(path):
        if not is_gold(file) and file.is_file() and key not in REGISTRIES["calib_keys"]:
            for _, origin in read_texts(file, key, fields):
                yield file, origin["line"], origin[IN_LINE]


def origin_of(number: int, record: dict[str, Any], key: str | None = None) -> dict[str, Any]:
    """Where a text stood, as `read_texts` gives it."""
    origin: dict[str, Any] = {"line": number, **{name: record[name] for name in ("id", "meta") if name in record}}
    if key is None:
        return origin
    from ...gold.keys import IN_LINE

    meta = record.get("meta")
    return {**origin, IN_LINE: record.get(key, meta.get(key) if isinstance(meta, dict) else None)}
