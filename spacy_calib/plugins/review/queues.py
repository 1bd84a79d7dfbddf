"""What `rank` and `select` share: their options, the units of a pipe, and how a queue is written and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from ...cli.shared.command import check_option, check_raw_cells, option
from ...cli.shared.examples import run_pipes, stream_examples
from ...cli.shared.options import FORMATS
from ...cli.shared.outputs import Output
from ...cli.shared.run import Run, pipes_to_run
from ...cli.shared.screen import msg
from ...cli.shared.writing import json_pieces, print_exact, print_json, write_file, write_pieces, write_text
from ...pairs.documents import DOCUMENT
from ...types import OPEN, OUTSIDE
from .queue.units import KINDS

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ...pairs.keyed import Digests
    from ...pipe.component import Calibrator
    from .queue.tasks import Task

TOOLS = ("prodigy", "label-studio", "doccano", "argilla")
# Suffix -> what such a file is.
SUFFIXES = {".json": "json", ".jsonl": "jsonl", ".csv": "csv"}
# Shorter sentences are most often lines of dashes, addresses and names: doubtful, and nothing to learn from.
MIN_WORDS = 3


UNIT_DEFAULT = "token; entity for recognizers, document for text categories"
FORMAT_HELP = (
    "Format of the printed result: table, json, or a form for annotation tools, which goes to --output if that is given"
)
OUTPUT_HELP = "File for the queue; without --format by its suffix: .json (all results), .jsonl or .csv"
WORDS_HELP = "Leave out units with fewer words (with a letter or a digit)"

Unit = Annotated[str | None, option("Unit to rank", "-u", words=KINDS, show_default=UNIT_DEFAULT)]
Top = Annotated[int | None, option("Number of rows", "--top", "--n", "-n", show_default="20 on screen, all in a file")]
MinWords = Annotated[int | None, option(WORDS_HELP, show_default=f"{MIN_WORDS} for sentences; else 0")]
QueueFile = Annotated[Path | None, option(OUTPUT_HELP, "-o")]
QueueFormat = Annotated[str, option(FORMAT_HELP, words=(*FORMATS, "jsonl", "csv", *TOOLS))]


@dataclass(frozen=True)
class QueueOutput:
    """File and form of a queue, and what is printed. suffixes: Suffix -> form. RAISES C056: the output's suffix is wrong."""

    output: Path | None
    format: str = "table"
    raw_cells: bool = False
    silent: bool = True
    suffixes: Mapping[str, str] = field(default_factory=lambda: SUFFIXES)

    def __post_init__(self) -> None:
        suffix = None if self.output is None else self.output.suffix
        if self.format in FORMATS:
            ends = ", ".join(self.suffixes)
            check_option("--output", suffix is None or suffix in self.suffixes, f"a file that ends in {ends}", self.output)
        if self.format in TOOLS:
            expected = f"a file that ends in .jsonl, .json where --format is {self.format}"
            check_option("--output", suffix not in (".spacy", ".csv"), expected, self.output)
        check_raw_cells(self.raw_cells, self.form == "csv")

    @property
    def form(self) -> str | None:
        """The form of the queue, "json" where it is all that was found; None where there is neither a form nor a file."""
        if self.format not in FORMATS:
            return self.format
        return None if self.output is None else self.suffixes[self.output.suffix]

    def files(self) -> list[Output]:
        """The files that are written."""
        named = (("--output", self.output), ("the labeling config", self.labels_file))
        return [Output(option, path) for option, path in named if path is not None]

    @property
    def labels_file(self) -> Path | None:
        """Where the labeling config of a Label Studio project goes, beside its queue; None for other forms."""
        return None if self.output is None or self.form != "label-studio" else self.output.with_suffix(".labels.xml")


def deliver_queue(
    queue: QueueOutput,
    pipe: Calibrator,
    result: dict[str, Any],
    tasks: Sequence[Task],
    met: Iterable[str],
    show: Callable[[], None],
) -> None:
    """Write the queue, and print it by `show`, or a summary. met: Labels with a score. RAISES C055: no file can be written."""
    from .queue.formats import WRITERS, label_studio_config, to_csv

    def text() -> Iterable[str]:
        return to_csv(tasks, queue.raw_cells) if queue.form == "csv" else WRITERS[str(queue.form)](tasks)

    if queue.output is not None and queue.form == "json":
        write_pieces(queue.output, json_pieces(result))
    elif queue.output is not None and queue.form in WRITERS:
        write_pieces(queue.output, text())
    if queue.labels_file is not None:
        categories = bool(tasks) and tasks[0].labelled and tasks[0].unit == DOCUMENT
        write_text(queue.labels_file, label_studio_config(_choices(pipe, result["unit"], met), categories))
    if queue.silent:
        return
    if queue.format == "json":
        print_json(result)
    elif queue.output is None and queue.format != "table":
        print_exact(text(), json=queue.form != "csv")
    else:
        show()
        if queue.labels_file is not None:
            msg.good(f"Labeling config: {queue.labels_file}")


def _choices(pipe: Calibrator, unit: str, met: Iterable[str]) -> Sequence[str]:
    """What an annotator chooses from, as the gold calls it; of a lemmatizer the lemmas that it gives here, not its edit trees, and of a linker the identities."""
    from ...annotations import plain_name
    from ...pairs.label_map import map_label
    from ...pipe.label_names import shown_names

    if plain_name(pipe.fit_info.layer) in OPEN:
        return list(met)
    if pipe.spans.groups is None or unit == "token":
        return pipe.lookup.labels()
    table = shown_names(pipe)
    return [
        name
        for name in dict.fromkeys(map_label(table, label) for label in pipe.lookup.span_labels())
        if name not in ("", OUTSIDE)
    ]


def write_docs(run: Run, nlp: Language, pipe: Calibrator, rows: Sequence[dict[str, Any]], output: Path) -> None:
    """Write the chosen units as Docs with the predicted annotation, in order. Their documents run through the pipeline once more: scoring
    lets go of every Doc, so that a pool of any length fits into memory. RAISES C055: the file cannot be written.
    """
    from spacy.tokens import DocBin

    from ...doc.cutting import cut
    from ...gold.answered_docs import write_gold_names
    from ...gold.keys import DRAWN_KEY
    from ...pipe.label_names import shown_annotation

    annotation = shown_annotation(pipe)
    rows_of: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        rows_of.setdefault(row["doc"], []).append(row)
    examples = stream_examples(nlp, run.data, numbers=rows_of, fields=run.fields)
    done = run_pipes(nlp, examples, pipes_to_run(nlp, pipe, sentences=True), silent=run.silent, title="Reading the batch")
    docs: dict[int, Doc] = {}
    for place, example in zip(sorted(rows_of), done, strict=True):
        for key, value in example.reference.user_data.items():
            example.predicted.user_data.setdefault(key, value)
        write_gold_names(example.predicted, annotation)
        for row in rows_of[place]:
            is_whole = row["sentence"] is None
            doc = example.predicted if is_whole else cut(example.predicted, row["start"], row["end"])
            doc.user_data[DRAWN_KEY] = row["drawn"]
            docs[row["rank"]] = doc
    write_file(output, DocBin(docs=[docs[row["rank"]] for row in rows], store_user_data=True).to_bytes())


def labelled_texts(nlp: Language, paths: Sequence[Path]) -> Digests:
    """Keys of the documents and sentences of files, see `unit_keys`. RAISES C092, C051 to C053, C073, C074: unreadable."""
    from ...pairs.keyed import digest
    from .queue.formats import csv_texts

    keys: set[int] = set()
    for path in paths:
        if path.suffix == ".csv":
            keys.update(map(digest, csv_texts(path)))
            continue
        for example in stream_examples(nlp, path, must_have_docs=False):
            doc = example.reference
            keys.add(digest(doc.text))
            if doc.has_annotation("SENT_START"):
                keys.update(digest(sentence.text) for sentence in doc.sents)
    return np.array(sorted(keys), dtype=np.uint64)
