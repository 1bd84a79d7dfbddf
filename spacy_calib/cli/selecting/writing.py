"""The batch -> a file, or an annotation tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...pairs.documents import DOCUMENT
from ..shared.examples import run_pipes
from ..shared.queues import labels_of, write_queue
from ..shared.records import FIELDS, Fields
from ..shared.results import print_exact, write_json
from ..shared.scored import of_pipe
from ..shared.scoring import pipes_to_run
from ..shared.texts import stream_examples
from .showing import show_batch

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ...pipe.component import Calibrator
    from ..select import SelectOptions
    from .choosing import Found


def write_batch(path: Path, result: dict[str, Any], docs: Callable[[], Sequence[Doc]], raw_cells: bool = False) -> None:
    """docs (Callable): Gives the chosen units as Docs, in order; called for .spacy. raw_cells (bool): Of .csv, see `csv_lines`.

    RAISES C055: the file cannot be written.
    """
    from spacy.tokens import DocBin

    from ...corpus.active.files import csv_bytes, jsonl_bytes
    from ..shared.atomic import write_file

    if path.suffix == ".json":
        write_json(path, result)
    elif path.suffix == ".spacy":
        write_file(path, DocBin(docs=docs(), store_user_data=True).to_bytes())
    elif path.suffix == ".jsonl":
        write_file(path, jsonl_bytes(result["rows"]))
    else:
        write_file(path, csv_bytes(result["rows"], raw_cells))


def deliver_tasks(run: SelectOptions, pipe: Calibrator, found: Found, result: dict[str, Any]) -> None:
    """Write the batch in the format of an annotation tool, and print its table; without a file print nothing but the batch.

    result (dict): See `select`. RAISES C055: a file cannot be written.
    """
    from ...corpus.review.formats import WRITERS

    if run.output is None:
        if not run.silent:
            print_exact(WRITERS[run.format](found.tasks), json=True)
        return
    kind = DOCUMENT if found.corpus.row_unit == DOCUMENT else "sentence"
    labels = labels_of(of_pipe(pipe, found.corpus, None), kind, found.corpus.tags_met())
    write_queue(run.output, run.format, found.tasks, labels, kind)
    if not run.silent:
        show_batch(result, run.output)


def batch_docs(
    nlp: Language, pipe: Calibrator, data: Path, found: Found, fields: Fields = FIELDS, *, silent: bool
) -> list[Doc]:
    """The chosen units as Docs with the predicted annotation, in order. Their documents run through the pipeline once more: scoring lets go
    of every Doc, so that a pool of any length fits into memory.
    """
    from ...doc.cutting import cut

    rows = found.result["rows"]
    rows_of: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        rows_of.setdefault(row["doc"], []).append(row)
    examples = stream_examples(nlp, data, wanted=rows_of, fields=fields)
    done = run_pipes(nlp, examples, pipes_to_run(nlp, pipe, sentences=True), silent=silent, what="Reading the batch")
    docs: dict[int, Doc] = {}
    for number, example in zip(sorted(rows_of), done, strict=True):
        for key, value in example.reference.user_data.items():
            example.predicted.user_data.setdefault(key, value)
        for row in rows_of[number]:
            whole = row["sentence"] is None
            docs[row["rank"]] = example.predicted if whole else cut(example.predicted, row["start"], row["end"])
    return [docs[row["rank"]] for row in rows]
