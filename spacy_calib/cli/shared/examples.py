"""Read Examples from files of gold and of texts, and run pipes over them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spacy.training import Example
from tqdm import tqdm

from ...errors import CalibError, calib_error
from ...errors.visible import shown_path
from ...pairs.documents import TEXT, SourceDocument
from ...pairs.progress import UNREPORTED, Progress
from ...pipe.pipeline import component_faults, reason
from .command import check_option, folder_errors
from .records import FIELDS, KEYED, TEXT_SUFFIXES, Fields, is_gold, read_records, readable_suffixes, suffix_of, unreadable

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

Read = TypeVar("Read")
Step = TypeVar("Step")

# Number of texts in a memory zone, rounded to batches of the pipeline; with worker processes a zone is so many times as large.
TEXTS_PER_ZONE, _ZONES_PER_START = 1000, 16


@dataclass(frozen=True)
class RunSettings:
    """Settings of one run of a pipeline over texts.

    n_process (int): Number of worker processes. silent (bool): Whether to show no progress bar. title (str): Title of the bar.
    gold (bool): Whether the texts may have gold; all Docs then stay in memory until the end (`read_through`).
    """

    n_process: int = 1
    silent: bool = True
    title: str = "Scoring"
    gold: bool = True


@folder_errors()
def data_files(path: Path) -> list[Path]:
    """Return the gold files at a path: the file itself, or those in a folder.

    In a folder, exports of annotation tools count only without other gold files. RAISES C051: the path does not exist. C052:
    the folder has no gold. C081: there are only texts. C053: the suffix has no reader. C105: its reader cannot be imported.
    """
    from ...gold.file_readers import ANSWER_READERS, file_reader, gold_suffixes
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
        raise calib_error("C081", path=path)
    file_reader(path)
    return [path]


def read_examples(
    nlp: Language, path: Path, gold_preproc: bool, *, more: Sequence[Path] = (), silent: bool = True
) -> list[Example]:
    """Read the examples of a gold file, or of a folder of gold files, as `spacy evaluate` does.

    Annotations of one text in several files, or by several people, are merged at the end (`gold.contradictions`).
    gold_preproc (bool): Whether each gold sentence becomes an example, with the tokens of the gold. more (Sequence[Path]):
        Further gold files or folders. silent (bool): Whether to show no progress bar. RAISES C051, C081, C105: as `data_files`.
        C052: a path has no documents. C053, C161, C692 to C696, C747, C748: as `read_gold`. C690: texts were chosen by score,
        not at random. C791: annotators disagree about every entity.
    """
    from ...gold.contradictions import check_agreement, reconcile
    from ...gold.reading import from_files

    paths = [path, *more]
    files_by_path = [data_files(folder) for folder in paths]
    docs: list[list[Doc]] = []  # of each file, in the order of all paths
    for folder, files in zip(paths, files_by_path, strict=True):
        docs += _read_docs(nlp, folder, files, silent)
    # Annotations are merged over the files of all paths. `from_files` then gives the examples the number of their path.
    merged_docs = iter(reconcile(docs))  # of each file; None for a Doc merged into another one
    examples_by_path: list[list[Example]] = []
    for files in files_by_path:
        examples_by_path.append([])
        for file in files:
            references = next(merged_docs)
            check_agreement(file, references)
            examples_by_path[-1] += _make_examples(nlp, references, file, gold_preproc)
    return list(from_files(examples_by_path)) if more else examples_by_path[0]


def _read_docs(nlp: Language, path: Path, files: Sequence[Path], silent: bool) -> list[list[Doc]]:
    """Return a list of gold Docs for each of the `files` at a path. RAISES C052: no Docs. C690: texts were chosen by score."""
    from ...gold.keys import DRAWN_KEY
    from ...gold.tool_exports import BY_DOUBT

    titles = [f"Reading {shown_path(Path(file.name))}" for file in files]
    docs_by_file = [
        list(with_progress(_stream_docs(nlp, file), title, silent)) for file, title in zip(files, titles, strict=True)
    ]
    docs = list(itertools.chain(*docs_by_file))
    if not docs:
        raise calib_error("C052", path=path)
    n_doubtful = sum(doc.user_data.get(DRAWN_KEY) == BY_DOUBT for doc in docs)  # chosen by score, not at random
    if n_doubtful:
        raise calib_error("C690", n=f"{n_doubtful:,}", of=f"{len(docs):,}", path=path)
    return docs_by_file


def read_gold(nlp: Language, file: Path) -> Iterator[Example]:
    """Yield the examples of one gold file. Predicted Docs get the arrays in `Doc.user_data` that calib pipes of `nlp` read.

    RAISES C053, C747: the file cannot be read. C161: it is no CoNLL-U. C692 to C696: it has no answers of people. C105, C748:
        the reader of a plug-in cannot be imported, or fails.
    """
    from ...gold.contradictions import reconcile
    from ...gold.file_readers import ANSWER_READERS

    docs: Iterable[Doc | None] = _stream_docs(nlp, file)
    if file.name.endswith((*ANSWER_READERS,)):  # merge the answers of several people about one text
        (docs,) = reconcile([[*_stream_docs(nlp, file)]])
    return _make_examples(nlp, docs, file, gold_preproc=False)


def _stream_docs(nlp: Language, file: Path) -> Iterator[Doc]:
    """Yield the gold Docs of a file, one at a time. RAISES C053, C747: it is empty, or cannot be read."""
    from ...gold.file_readers import advise_on, file_reader

    if not file.stat().st_size:
        raise calib_error("C053" if file.suffix == ".spacy" else "C747", path=file, why="it is empty", mend=advise_on(file))
    with _reader_errors(file):
        for doc in file_reader(file)(nlp, file):
            doc.ents  # noqa: B018  # raises if an IOB tag I follows no B, which spaCy does not report before
            yield doc


def _make_examples(nlp: Language, references: Iterable[Doc | None], file: Path, gold_preproc: bool) -> Iterator[Example]:
    """Yield the examples of gold Docs; None is skipped. gold_preproc: As in `read_examples`. RAISES C053: spaCy rejects one."""
    from ...gold.conllu import warn_if_contractions_split
    from ...gold.reading import make_examples
    from ...pipe.component import Calibrator

    sources = [pipe.source for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    keys_to_copy = tuple(dict.fromkeys(key for source in sources for key in source.user_data_keys))
    with _reader_errors(file):
        examples = make_examples(nlp, references, file, gold_preproc, keys_to_copy)
        yield from warn_if_contractions_split(examples, file) if file.suffix == ".spacy" else examples


@contextmanager
def _reader_errors(file: Path) -> Iterator[None]:
    """Raise C053 for any exception in the block, which reads the file. A CalibError is raised unchanged."""
    from ...gold.file_readers import advise_on

    try:
        yield
    except CalibError:
        raise
    except Exception as error:
        raise calib_error("C053", path=file, why=reason(error), mend=advise_on(file)) from None


def run_pipes(
    nlp: Language, examples: Iterable[Example], names: Sequence[str], *, silent: bool, title: str, n_process: int = 1
) -> Iterator[Example]:
    """Run only the pipes `names` over the predicted Docs; yield each example when done. silent (bool): No progress bar."""
    total = len(examples) if isinstance(examples, Sized) else None
    with progress_bar(title, silent, total) as bar:
        yield from _run_with_bar(nlp, examples, names, bar, n_process)


def progress_bar(title: str, silent: bool, total: int | None = None) -> tqdm:
    """Make a progress bar of Docs, shown on a terminal only, unless silent. total (int | None): Their number, if known."""
    return tqdm(total=total, desc=title, unit="doc", disable=silent or None)


def with_progress(steps: Iterable[Step], title: str, silent: bool) -> Iterable[Step]:
    """Wrap an iteration over steps in a progress bar, shown on a terminal only, unless silent."""
    bar: Iterable[Step] = tqdm(steps, desc=title, disable=silent or None)
    return bar


@contextmanager
def share_bar(silent: bool) -> Iterator[Progress]:
    """Yield a Progress, by which a computation reports stage and share done; shown on a terminal only, unless silent."""
    bar_format = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}"
    with tqdm(total=1.0, bar_format=bar_format, miniters=0, disable=silent or None) as bar:

        def report(share: float, stage: str) -> None:
            bar.update(max(0.0, share - bar.n))  # `update` adds to the bar
            if bar.desc != stage:
                bar.set_description_str(stage)

        yield UNREPORTED if bar.disable else Progress(report)


def _run_with_bar(
    nlp: Language, examples: Iterable[Example], names: Sequence[str], bar: tqdm, n_process: int
) -> Iterator[Example]:
    """Run only the pipes `names` over the predicted Docs, in `n_process` processes; yield each example, and move the bar."""
    to_run, to_yield = itertools.tee(examples)
    with nlp.select_pipes(enable=list(names)), component_faults(nlp, names):
        docs = nlp.pipe((example.predicted for example in to_run), n_process=n_process)
        for example, doc in zip(to_yield, docs, strict=True):
            example.predicted = doc
            yield example
            bar.update()


def read_through(
    nlp: Language,
    examples: Iterable[Example],
    names: Sequence[str],
    read: Callable[[Iterator[Example]], Read],
    settings: RunSettings,
) -> Iterator[Read]:
    """Run the pipes `names` over examples, and yield what `read` returns for each batch, whose Docs are then freed.

    All examples are one batch if `settings.gold`, as their Docs are in memory already. examples (Iterable[Example]): Should
    make Docs on demand. read (Callable): Gets the examples of a batch; must return strings and numbers, no part of a Doc.
    """
    from ...doc.zones import memory_zone

    remaining = iter(examples)
    # A zone has whole spaCy batches, as a score's last digit may depend on its batch.
    n_batches = max(1, TEXTS_PER_ZONE // nlp.batch_size)
    if settings.n_process != 1:  # larger zones, since worker processes start anew in each zone
        n_batches *= _ZONES_PER_START
    with progress_bar(settings.title, settings.silent) as bar:
        if settings.gold:
            yield read(_run_with_bar(nlp, remaining, names, bar, settings.n_process))
            return
        while True:
            with memory_zone(nlp):
                zone_examples = list(itertools.islice(remaining, n_batches * nlp.batch_size))
                if not zone_examples:
                    return
                result = read(_run_with_bar(nlp, zone_examples, names, bar, settings.n_process))
                del zone_examples  # before the zone ends, which frees what the Docs refer to
            yield result


@folder_errors()
def text_files(path: Path, fields: Fields = FIELDS) -> list[Path]:
    """Return the files with texts, with or without gold, at a path: a file itself, or those in a folder.

    fields (Fields): Names of text and id in them. RAISES C051: the path does not exist. C056: `fields` were given, but no file
        has columns or keys. C073: a folder without such files, or a file of another kind.
    """
    from ...gold.reading import gold_files, visible_files

    if not path.exists():
        raise calib_error("C051", path=path)
    if path.is_dir():
        files = sorted([*filter(is_gold, gold_files(path)), *visible_files(path, ".json", *TEXT_SUFFIXES)])
    else:
        files = [path] if suffix_of(path) in readable_suffixes() else []
    if not files:
        raise calib_error("C073", path=path, suffixes=", ".join(readable_suffixes()))
    if not any(suffix_of(file) in KEYED for file in files):
        kinds = ", ".join(sorted({suffix_of(file) for file in files}))
        check_option("--columns", fields == FIELDS, f"left out for files without columns ({kinds})", "it")
    return files


def holds_gold(path: Path) -> bool:
    """Whether a path is, or contains, a gold file. RAISES C051, C073: as `text_files`."""
    return any(map(is_gold, text_files(path)))


def stream_examples(
    nlp: Language,
    path: Path,
    *,
    must_have_docs: bool = True,
    key: str | None = None,
    fields: Fields = FIELDS,
    numbers: Container[int] | None = None,
) -> Iterator[Example]:
    """Yield an example for each text of all files at a path, with gold from gold files (`read_gold`), else without gold.

    must_have_docs (bool): Whether a path without documents is an error. key (str | None): A field of records whose value is
        stored in the text's origin (`origin_of`). fields (Fields): Names of text and id in the records. numbers
        (Container[int] | None): Numbers of the texts to yield, from 0; no Docs are made of other plain texts. None yields all.
    RAISES C051, C073: as `text_files`. C053, C074, C161, C304, C441: a file cannot be read. C052: no documents.
    """
    n_examples = 0
    files = text_files(path)
    for file in files:  # read once before the first text is scored, to find errors; a FIFO can be read only once
        if not is_gold(file) and file.is_file():
            deque(read_texts(file, fields=fields), maxlen=0)  # keeps nothing
    for file in files:
        file_name = {"file": shown_path(file.relative_to(path))} if len(files) > 1 else {}
        has_gold = is_gold(file)
        items: Iterator[Any] = read_gold(nlp, file) if has_gold else read_texts(file, key, fields)
        for item in items:  # an Example, or (text, origin)
            if numbers is None or n_examples in numbers:
                yield item if has_gold else _example_without_gold(nlp, file, item[0], {**file_name, **item[1]})
            n_examples += 1
    if must_have_docs and not n_examples:
        raise calib_error("C052", path=path)


def _example_without_gold(nlp: Language, file: Path, text: str, origin: dict[str, Any]) -> Example:
    """Make an example of a text, with its origin. RAISES C448: it is longer than nlp.max_length. C074: no Doc can be made."""
    from ...gold.keys import DOC_KEY, ORIGIN

    if len(text) > nlp.max_length:
        raise calib_error("C448", line=origin["line"], path=file, n=f"{len(text):,}", most=f"{nlp.max_length:,}")
    try:
        example = Example(nlp.make_doc(text), nlp.make_doc(text))
    except ValueError as error:
        raise unreadable(file, reason(error)) from None
    example.reference.user_data[ORIGIN] = origin
    # Each text is a document of its own when documents are resampled.
    example.reference.user_data[DOC_KEY] = SourceDocument(TEXT, (shown_path(file), origin["line"]))
    return example


def read_texts(file: Path, key: str | None = None, fields: Fields = FIELDS) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (text, its origin from `origin_of`) for each record of a file without gold; empty and null texts are left out.

    key (str | None): A key of the records, or of their "meta", whose value is stored in the origin.
    fields (Fields): Names of text and id in the records. RAISES C074, C304, C441: as `read_records`.
    """
    for number, record in read_records(file, fields, key):
        if record["text"].strip():
            yield record["text"], origin_of(number, record, key)


def origin_of(number: int, record: dict[str, Any], key: str | None = None) -> dict[str, Any]:
    """Return where a text is from, a dict: its "line" (number from 1), and the "id" and "meta" of its record if it has them.

    key (str | None): A key of the record, or of its "meta". Its value, or None, is added under the key IN_LINE.
    """
    origin: dict[str, Any] = {"line": number, **{name: record[name] for name in ("id", "meta") if name in record}}
    if key is None:
        return origin
    from ...gold.keys import IN_LINE

    meta = record.get("meta")
    value_in_meta = meta.get(key) if isinstance(meta, dict) else None
    return {**origin, IN_LINE: record.get(key, value_in_meta)}
