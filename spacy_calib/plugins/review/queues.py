"""What `rank` and `audit` share: their options, and how a queue is written and printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from ...cli.shared.command import check_option, option
from ...cli.shared.examples import run_pipes, stream_examples
from ...cli.shared.options import FORMATS
from ...cli.shared.run import Run, pipes_to_run
from ...cli.shared.screen import shorten
from ...cli.shared.writing import print_exact, print_json, write_file, write_json, write_text
from .queue.units import KINDS

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ...pairs.keyed import Digests
    from ...pipe.component import Calibrator
    from .queue.tasks import Task

TOOLS = ("prodigy", "label-studio", "doccano", "argilla")
SUFFIXES = {".json": "json", ".jsonl": "jsonl", ".csv": "csv"}  # suffix of a file -> its format
RANK_SUFFIXES = {**SUFFIXES, ".spacy": "spacy"}  # only `rank` writes Docs, and only whole ones
MIN_WORDS = 3  # shorter sentences are mostly lines of dashes, addresses and names: doubtful, but useless to learn from
_TEXT_WIDTH = 60  # of a unit in its text, in a printed table
_WHITE_SPACE = re.compile(r"\s+")
UNIT_DEFAULT = "token; entity for recognizers, document for text categories"
FORMAT_HELP = "Print a table, JSON, or the queue in the format of a tool; the last goes to --output if given"
OUTPUT_HELP = "File for the queue; without --format its suffix decides: .json (all results), .jsonl or .csv"
Unit = Annotated[str | None, option("Unit that is ranked", "-u", words=KINDS, show_default=UNIT_DEFAULT)]
Top = Annotated[int | None, option("Number of units", "--top", "--n", "-n", show_default="20 on screen, all in a file")]
QueueFile = Annotated[Path | None, option(OUTPUT_HELP, "-o")]
QueueFormat = Annotated[str, option(FORMAT_HELP, words=(*FORMATS, "jsonl", "csv", *TOOLS))]


@dataclass(frozen=True)
class QueueOutput:
    """The file of a queue, and the formats in which the queue is written and printed.

    output (Path | None): The file; None for no file. format (str): The option --format. "table" and "json" (FORMATS) are
    formats of the printed result; the suffix of the file then decides on the format of the file. "jsonl", "csv" and TOOLS are
    formats of the file or, without a file, of the printed queue. silent (bool): Whether nothing is printed. suffixes (Mapping):
    Suffix of a file -> its format. RAISES C056: the suffix of the file is unknown, or does not fit the format.
    """

    output: Path | None
    format: str = "table"
    silent: bool = True
    suffixes: Mapping[str, str] = field(default_factory=lambda: SUFFIXES)

    def __post_init__(self) -> None:
        suffix = None if self.output is None else self.output.suffix
        if self.format in FORMATS:
            expected = f"a file that ends in {', '.join(self.suffixes)}"
            check_option("--output", suffix is None or suffix in self.suffixes, expected, self.output)
        if self.format in TOOLS:
            expected = f"a file that ends in .jsonl or .json with --format {self.format}"
            check_option("--output", suffix not in (".spacy", ".csv"), expected, self.output)

    @property
    def queue_format(self) -> str | None:
        """Format of the queue: a key of WRITERS, "names" (table), "spacy" (Docs), "json" (all results); None if not written."""
        if self.format not in FORMATS:  # "table" and "json" are formats of the printed result, not of the queue
            return self.format
        return None if self.output is None else self.suffixes[self.output.suffix]


def deliver_queue(queue: QueueOutput, result: dict[str, Any], tasks: Sequence[Task], show: Callable[[], None]) -> None:
    """Write the tasks of a queue to a file, then print them.

    queue (QueueOutput): The file and the formats. result (dict): All results of the command, for JSON. tasks (Sequence[Task]):
    The tasks, first to last. show (Callable): Prints the results as tables. RAISES C055: the file cannot be written.
    """
    from .queue.formats import WRITERS, to_names

    def queue_lines() -> Iterable[str]:
        return to_names(tasks) if queue.queue_format == "names" else WRITERS[str(queue.queue_format)](tasks)

    if queue.output is not None and queue.queue_format == "json":
        write_json(queue.output, result)
    elif queue.output is not None and queue.queue_format != "spacy":  # `rerun_and_write_docs` writes Docs
        write_text(queue.output, queue_lines())
    if queue.silent:
        return
    if queue.format == "json":
        print_json(result)
    elif queue.output is None and queue.format != "table":
        print_exact(queue_lines(), json=queue.queue_format != "csv")
    else:
        show()


def unit_in_text(record: Mapping[str, Any]) -> str:
    """Return a unit in brackets, with the text around it, on one line of at most _TEXT_WIDTH characters.

    record (Mapping): From `to_record`: "text", "focus" (text of the unit), and "marks" (labelled spans of the text).
    """
    text, focus = record["text"], record["focus"]
    starts = [mark["start"] for mark in record["marks"] if text[mark["start"] : mark["end"]] == focus]
    if not starts and text.count(focus) != 1:  # the place of the unit in the text is not known
        return shorten(text, _TEXT_WIDTH)
    start = starts[0] if starts else text.index(focus)
    unit = f"[{shorten(focus, _TEXT_WIDTH * 2 // 3)}]"
    before, after = (_WHITE_SPACE.sub(" ", part) for part in (text[:start], text[start + len(focus) :]))
    n_left = _TEXT_WIDTH - len(unit)  # characters for the text before and after the unit
    n_before = max(n_left // 2, n_left - len(after))  # half of them, or more if the text after the unit is short
    before = before if len(before) <= n_before else f"…{before[len(before) - n_before + 1 :]}"
    n_after = n_left - len(before)
    after = after if len(after) <= n_after else f"{after[: n_after - 1]}…"
    return f"{before}{unit}{after}".strip()


def rerun_and_write_docs(run: Run, nlp: Language, pipe: Calibrator, records: Sequence[dict[str, Any]], output: Path) -> None:
    """Run the pipeline again on the documents of a queue, and write the Docs with their predictions, in the queue's order.

    Scoring does not keep the Docs. records: From `to_record`, one for each document. RAISES C055: the file cannot be written.
    """
    from spacy.tokens import DocBin

    from ...gold.answered_docs import write_gold_names
    from ...gold.keys import DRAWN_KEY
    from ...pipe.label_names import shown_annotation

    annotation = shown_annotation(pipe)
    sampling_of = {record["doc"]: record["drawn"] for record in records}  # number of a Doc in the data -> how it was chosen
    examples = stream_examples(nlp, run.data, numbers=sampling_of, fields=run.fields)
    names = pipes_to_run(nlp, pipe, sentences=True)
    predictions = run_pipes(nlp, examples, names, silent=run.silent, title="Reading the batch")
    docs: dict[int, Doc] = {}
    for number, example in zip(sorted(sampling_of), predictions, strict=True):
        doc = docs[number] = example.predicted
        for key, value in example.reference.user_data.items():
            doc.user_data.setdefault(key, value)  # an entry that the pipeline wrote is not replaced
        write_gold_names(doc, annotation)
        doc.user_data[DRAWN_KEY] = sampling_of[number]
    write_file(output, DocBin(docs=[docs[record["doc"]] for record in records], store_user_data=True).to_bytes())


def labelled_texts(nlp: Language, paths: Sequence[Path]) -> Digests:
    """Return sorted digests of all documents and sentences in files. RAISES C051 to C053, C073, C074, C441: unreadable file."""
    from ...pairs.keyed import digest

    digests: set[int] = set()
    for path in paths:
        for example in stream_examples(nlp, path, must_have_docs=False):
            doc = example.reference
            digests.add(digest(doc.text))
            if doc.has_annotation("SENT_START"):
                digests.update(digest(sentence.text) for sentence in doc.sents)
    return np.array(sorted(digests), dtype=np.uint64)
