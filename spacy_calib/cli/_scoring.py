"""MODEL and DATA -> the scored corpus that reports, queues and expectations read. DATA may be gold or plain texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpus.visible import shown_path
from ..errors import calib_error
from ._common import (
    check_readable,
    import_user_code,
    load_pipeline,
    pipes_named,
    read_gold,
    reason,
    run_pipes,
    use_gpu,
)
from ._gold import why_silent
from ._outputs import READABLE
from ._plain_data import fault_of

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example

    from ..corpus.scored import ScoredCorpus
    from ..pipe.component import Calibrator

# .spacy: a DocBin, with gold or without. .conllu: CoNLL-U. .jsonl: {"text": ...} on each line. .txt: a text on each line.
SUFFIXES = READABLE


def open_pipeline(model: str, attr: str | None, *, code: Path | None, gpu_id: int) -> tuple[Language, Calibrator]:
    """The pipeline and its fitted calib pipe with this prefix, the first one where none is named.

    RAISES C027: there is no fitted pipe. C068: none with this prefix. C021, C069: see `check_readable`. C050, C060, C062: model, GPU, code.
    """
    nlp = open_model(model, code=code, gpu_id=gpu_id)
    return nlp, pipe_of(nlp, attr)


def open_model(model: str, *, code: Path | None, gpu_id: int) -> Language:
    """RAISES C050, C060, C062: the model cannot be loaded, there is no such GPU, the code cannot be imported."""
    import_user_code(code)
    use_gpu(gpu_id)
    return load_pipeline(model)


def pipe_of(nlp: Language, attr: str | None) -> Calibrator:
    """RAISES C021, C027, C068, C069: see `open_pipeline`."""
    pipe = pipes_named(nlp, attr)[0]
    check_readable(nlp, pipe)
    return pipe


def text_files(path: Path) -> list[Path]:
    """The files with texts at a path.

    RAISES C051: the path does not exist. C073: a folder without such files, or a file of another kind.
    """
    from ..doc.reading import GOLD_SUFFIXES, gold_files

    if not path.exists():
        raise calib_error("C051", path=path)
    if not path.is_dir():
        files = [path] if path.suffix in SUFFIXES else []
    else:
        found = (file for suffix in SUFFIXES if suffix not in GOLD_SUFFIXES for file in path.rglob(f"*{suffix}"))
        plain = (file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts))
        files = sorted([*gold_files(path), *plain])
    if not files:
        raise calib_error("C073", path=path, suffixes=", ".join(SUFFIXES))
    return files


def stream_examples(
    nlp: Language, path: Path, *, gold_preproc: bool = False, doc_key: str | None = None, required: bool = True
) -> Iterator[Example]:
    """The examples of all files at a path, one by one: those of a gold file as `read_examples` reads them, the others without gold.

    required (bool): False lets there be no documents. RAISES C051, C073: see `text_files`. C053, C074, C160, C161: a file cannot be read.
        C052: there are no documents.
    """
    n_examples = 0
    files = text_files(path)
    for file in files:
        check_lines(file)
    for file in files:
        named = {"file": shown_path(file.relative_to(path))} if len(files) > 1 else {}
        for example in _examples_of(nlp, file, gold_preproc, doc_key, named):
            n_examples += 1
            yield example
    if required and not n_examples:
        raise calib_error("C052", path=path)


def _examples_of(
    nlp: Language, file: Path, gold_preproc: bool, doc_key: str | None, named: dict[str, Any]
) -> Iterator[Example]:
    """named (dict): Put before what is known of the origin of a text."""
    from spacy.training import Example

    from ..doc.collect import ORIGIN
    from ..doc.reading import DOC_KEY, GOLD_SUFFIXES
    from ..pairs.documents import TEXT, SourceDocument

    if file.suffix in GOLD_SUFFIXES:
        yield from read_gold(nlp, file, gold_preproc, doc_key)
    else:
        for text, origin in read_texts(file):
            try:
                example = Example(nlp.make_doc(text), nlp.make_doc(text))
            except ValueError as error:  # longer than nlp.max_length
                raise calib_error("C074", path=file, why=reason(error)) from None
            example.reference.user_data[ORIGIN] = {**named, **origin}
            example.reference.user_data[DOC_KEY] = SourceDocument(TEXT, (shown_path(file), origin["line"]))
            yield example


def check_lines(file: Path) -> None:
    """Read a file of plain texts to its end, so that a fault is found before the first text is scored; what can be read once is left.

    RAISES C074: see `read_texts`.
    """
    from ..doc.reading import GOLD_SUFFIXES

    if file.suffix not in GOLD_SUFFIXES and file.is_file():
        for _ in read_texts(file):
            pass


def read_texts(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The texts of a .txt or .jsonl file, each with its "line" (from 1), and the "id" and "meta" of its record; empty ones are left out.

    RAISES C074: a line of a .jsonl file holds no text, or what JSON cannot hold, or the file is not UTF-8.
    """
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                record = {"text": line.rstrip("\r\n")} if file.suffix == ".txt" else _record_of(file, number, line)
                if record["text"].strip():
                    yield record["text"], {"line": number, **{key: record[key] for key in ("id", "meta") if key in record}}
    except (OSError, UnicodeDecodeError) as error:
        raise calib_error("C074", path=file, why=reason(error)) from None


def _record_of(file: Path, number: int, line: str) -> dict[str, Any]:
    import srsly

    if not line.strip():
        return {"text": ""}
    try:
        record = srsly.json_loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise calib_error("C074", path=file, why=f'line {number} is no object with a "text"')
    for key in ("text", "id", "meta"):
        fault = fault_of(record.get(key))
        if fault is not None:
            raise calib_error("C074", path=file, why=f'the "{key}" of line {number} {fault}')
    return record


def pipes_to_run(nlp: Language, pipe: Calibrator, sentences: bool = False) -> list[str]:
    """The pipes up to the calib pipe; where sentences are wanted, up to the first one that sets them too."""
    order = nlp.pipe_names
    last = order.index(pipe.name)
    if sentences:
        setters = [
            i for i, name in enumerate(order) if {"doc.sents", "token.is_sent_start"} & set(nlp.get_pipe_meta(name).assigns)
        ]
        last = max(last, min(setters, default=last))
    return order[: last + 1]


def score(
    nlp: Language,
    pipe: Calibrator,
    examples: Iterable[Example],
    *,
    sentences: bool = False,
    n_process: int = 1,
    silent: bool = True,
    what: str = "Scoring",
) -> ScoredCorpus:
    """Run the pipeline over the examples and keep what the calib pipe says; the Docs are let go one by one.

    sentences (bool): Whether the pipes that find sentences have to run too.
    RAISES C075: no token got a score.
    """
    from ..doc.collect import scored_corpus
    from ..doc.layers import get_layer

    names = pipes_to_run(nlp, pipe, sentences)
    done = run_pipes(nlp, examples, names, silent=silent, what=what, n_process=n_process)
    first: list[Doc] = []
    corpus = scored_corpus(_keep_one(done, first), pipe.attr, get_layer(pipe.fit_info["layer"]), pipe.source_labels())
    if not corpus.counted.any():
        raise calib_error("C075", name=pipe.name, n_docs=corpus.n_docs, why=why_silent(nlp, pipe, first))
    return corpus


def _keep_one(examples: Iterable[Example], kept: list[Doc]) -> Iterator[Example]:
    """The examples; the predicted Doc of the first one with some tokens is put into `kept`."""
    for example in examples:
        if not kept and len(example.predicted) > 1:
            kept.append(example.predicted)
        yield example
