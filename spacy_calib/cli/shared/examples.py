"""Gold files -> Examples, and the pipes that run over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ...errors import CalibError, calib_error
from ...pipe.loading import reason
from .workers import watched

if TYPE_CHECKING:
    from spacy.language import Language
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
    """The gold files at a path, see `doc.reading.gold_files`.

    RAISES C051: the path does not exist. C052: a folder without such files. C053: an empty file, or one of another kind.
    """
    from ...doc.reading import GOLD_SUFFIXES, gold_files

    if not path.exists():
        raise calib_error("C051", path=path)
    if path.is_dir():
        files = gold_files(path)
        if not files:
            raise calib_error("C052", path=path)
        return files
    if path.suffix not in GOLD_SUFFIXES:
        raise calib_error("C053", path=path, why=f"its name does not end in {' or '.join(GOLD_SUFFIXES)}")
    return [path]


def read_examples(nlp: Language, path: Path, gold_preproc: bool, doc_key: str | None = None) -> list[Example]:
    """The examples of a gold file or a folder of them, as `spacy evaluate` reads them; see `doc.reading.GoldReader`.

    RAISES C051 to C053: see `data_files`; or a file is no DocBin, or holds no documents. C160, C161: see `read_gold`.
    """
    examples: list[Example] = []
    for file in data_files(path):
        examples += read_gold(nlp, file, gold_preproc, doc_key)
    if not examples:
        raise calib_error("C052", path=path)
    return examples


def read_gold(
    nlp: Language, file: Path, gold_preproc: bool, doc_key: str | None, arrays: Sequence[str] | None = None
) -> Iterator[Example]:
    """The examples of one gold file, one by one, with the arrays that the calib pipes of the pipeline read from `Doc.user_data`.

    arrays (Sequence[str] | None): Keys of those that another pipeline reads. RAISES C053: the file cannot be read. C160: a Doc names no document under the key. C161: no CoNLL-U.
    """
    from ...doc.reading import GoldReader

    if not file.stat().st_size:
        raise calib_error("C053", path=file, why="it is empty")
    try:
        yield from GoldReader(gold_preproc, doc_key, arrays_read(nlp) if arrays is None else arrays).examples(nlp, file)
    except CalibError:
        raise
    except Exception as error:
        raise calib_error("C053", path=file, why=reason(error)) from None


def arrays_read(nlp: Language) -> tuple[str, ...]:
    """The keys of the user data whose arrays the calib pipes of a pipeline read."""
    from ...pipe.component import Calibrator

    sources = [pipe.source for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    return tuple(dict.fromkeys(source.user_data_key for source in sources if source.user_data_key))


def run_pipes(
    nlp: Language, examples: Iterable[Example], names: Iterable[str], *, silent: bool, what: str, n_process: int = 1
) -> Iterator[Example]:
    """Run the named pipes over the predicted Docs, batch by batch, with a progress bar (on a terminal only); yields each example when its Doc is ready.

    examples (Iterable[Example]): Read as they are needed. n_process (int): Worker processes.
    """
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


def _run(nlp: Language, examples: Iterable[Example], names: Iterable[str], bar: tqdm, n_process: int) -> Iterator[Example]:
    to_run, kept = itertools.tee(examples)
    with nlp.select_pipes(enable=list(names)), watched(n_process):
        docs = nlp.pipe((example.predicted for example in to_run), n_process=n_process)
        for example, doc in zip(kept, docs, strict=True):
            example.predicted = doc
            yield example
            bar.update()


def read_through(
    nlp: Language,
    examples: Iterable[Example],
    names: Sequence[str],
    read: Callable[[Iterator[Example]], Read],
    how: Pass,
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
