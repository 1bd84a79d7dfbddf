"""`spacy calib select`: which unlabelled sentences, or documents, to label next."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from ..corpus.active.pieces import PIECE_KINDS
from ..corpus.active.priority import ADDITIVE, BY, SIGNALS
from .selecting.choosing import choose_from_all, choose_from_blocks, hunted_tags, labelled_texts
from .selecting.showing import show_batch
from .selecting.writing import batch_docs, deliver_tasks, write_batch
from .shared.checks import check_option, check_raw_cells
from .shared.command import choice, command
from .shared.options import FORMATS, Columns, FirstAttr, RawCells, Texts
from .shared.outputs import Output
from .shared.queues import TOOLS, queue_outputs
from .shared.results import deliver
from .shared.run import Run

DEFAULT_N = 100
# Documents to adapt to.
N_TO_ADAPT = 10
PURPOSES = ("train", "adapt")
# Shorter ones are most often lines of dashes, addresses and names: doubtful, and nothing to learn from.
MIN_WORDS = 3
SUFFIXES = (".jsonl", ".spacy", ".csv", ".json")
TOOL_SUFFIXES = (".jsonl", ".json")


@dataclass(frozen=True)
class SelectOptions(Run):
    """What `select` chooses, and how much of it."""

    gold_preproc: ClassVar[bool] = False  # type: ignore[misc]  # there is no gold yet

    data: Texts
    _: KW_ONLY
    purpose: Annotated[
        str,
        choice(
            PURPOSES,
            "--for",
            help="What the labels are for: to train on what is doubtful, or to adapt to (and measure accuracy on) texts of a new kind, "
            "by whole documents that stand for all: one drawn at random from each of --n equal parts of the documents, sorted by doubt; the shortest "
            "ones, a tenth of the words, are left out",
        ),
    ] = "train"
    n: Annotated[
        int | None,
        typer.Option(
            "--top", "--n", "-n", help=f"How many; {DEFAULT_N} unless --max-words is given, {N_TO_ADAPT} with --for adapt"
        ),
    ] = None
    max_words: Annotated[int | None, typer.Option("--max-words", help="Choose at most that many words")] = None
    min_words: Annotated[int, typer.Option("--min-words", help="Leave out what has fewer words (with a letter or a digit)")] = (
        MIN_WORDS
    )
    by: Annotated[str | None, choice(BY, "--by", help=f"What makes one worth labelling, {BY[0]} by default")] = None
    signal: Annotated[str, choice(SIGNALS, "--signal", help="Scores to order by")] = "calibrated"
    per_word: Annotated[
        bool | None,
        typer.Option(
            "--per-word/--per-sentence",
            help="Expected errors, or P(rare tag), of a word or of a sentence; per word with --max-words",
        ),
    ] = None
    rare_share: Annotated[
        float,
        typer.Option("--rare-share", help="Hunt the rarest tags, which together held at most this share of tokens at the fit"),
    ] = 0.01
    tags: Annotated[list[str], typer.Option("--tag", "-T", help="Hunt this tag; may be repeated")] = field(default_factory=list)
    per_doc: Annotated[
        int | None, typer.Option("--per-doc", help="At most that many sentences of one document, round robin")
    ] = None
    unit: Annotated[
        str | None,
        choice(
            PIECE_KINDS,
            "--unit",
            "-u",
            help=f"What is labelled as one piece, {PIECE_KINDS[0]} by default (doc with --for adapt)",
        ),
    ] = None
    exclude: Annotated[
        list[Path],
        typer.Option("--exclude", "-x", help="Texts labelled already (.jsonl, .spacy, .csv, .txt); may be repeated"),
    ] = field(default_factory=list)
    seed: Annotated[int, typer.Option("--seed", help="Of --by random and --for adapt")] = 0
    attr: FirstAttr = None
    columns: Columns = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File for the batch: .jsonl, .spacy (with the predicted annotation), .csv or .json",
        ),
    ] = None
    raw_cells: RawCells = False
    format: Annotated[
        str,
        choice(
            (*FORMATS, *TOOLS),
            "--format",
            help="What is printed: table or json; or the batch for an annotation tool, which goes to --output where one is given",
        ),
    ] = "table"

    def check_options(self) -> None:
        """RAISES C056: a value out of range, or two that exclude one another."""
        if self.adapts:
            given = {"--by": self.by, "--max-words": self.max_words, "--per-doc": self.per_doc, "--per-word": self.per_word}
            for flag, value in given.items():
                check_option(flag, value is None, "left out with --for adapt, which draws documents at random", value)
            check_option("--unit", self.unit != "sentence", "doc with --for adapt", self.unit)
        check_option("--rare-share", 0 < self.rare_share < 1, "between 0 and 1", self.rare_share)
        check_option("--tag", not self.tags or self.by == "rare-tag", "left out unless --by is rare-tag", ", ".join(self.tags))
        additive = not self.per_word or self.order in ADDITIVE
        check_option("--per-word", additive, f"left out unless --by is one of {', '.join(ADDITIVE)}", f"--by {self.order}")
        check_option("--per-doc", self.per_doc is None or self.unit != "doc", "left out with --unit doc", self.per_doc)
        suffixes, where = (SUFFIXES, "") if self.format in FORMATS else (TOOL_SUFFIXES, f" where --format is {self.format}")
        named = self.output is None or self.output.suffix in suffixes
        check_option("--output", named, f"a file that ends in {', '.join(suffixes)}{where}", self.output)
        check_raw_cells(self.raw_cells, self.output is not None and self.output.suffix == ".csv")

    @property
    def adapts(self) -> bool:
        """Whether documents are chosen to adapt to."""
        return self.purpose == "adapt"

    @property
    def order(self) -> str:
        """One of BY. Documents to adapt to are spread over their expected errors per word."""
        return self.by or ("expected-errors" if self.adapts else BY[0])

    @property
    def piece(self) -> str:
        """One of PIECE_KINDS."""
        return self.unit or ("doc" if self.adapts else PIECE_KINDS[0])

    @property
    def limit(self) -> int | None:
        """Units to choose at most."""
        if self.adapts:
            return self.n or N_TO_ADAPT
        return DEFAULT_N if self.n is None and self.max_words is None else self.n

    @property
    def needs_all(self) -> bool:
        """Whether something is to be known of every unit of the pool; else the best units so far do."""
        limited = self.max_words is None and self.per_doc is None
        return self.adapts or bool(self.exclude) or not limited

    @property
    def divides(self) -> bool:
        """Whether priorities are divided by the words."""
        wanted = self.adapts or (self.max_words is not None if self.per_word is None else self.per_word)
        return wanted and self.order in ADDITIVE

    def outputs(self) -> list[Output]:
        return queue_outputs(self.output, self.format)

    def read_files(self) -> list[Path]:
        return self.exclude


@command(
    SelectOptions,
    does="Pick unlabelled texts to annotate, to train on or adapt to",
    example="./calibrated texts.txt --by margin --max-words 2000 -o batch.jsonl",
)
def select(run: SelectOptions) -> dict[str, Any]:
    """
    Choose from unlabelled texts what is worth labelling next: the sentences whose
    labels are most likely wrong, or that hold rare tags, each with the reason. Or
    (--for adapt) the few documents that stand for all.

    RETURNS (dict): "pipe", "attr", "for", "by" ("spread" for documents to adapt to), "signal", "unit", "per_word", "tags" that were hunted; "pool" and "batch": "units", "words",
        "expected_errors", "docs"; "excluded": units of the pool whose text is labelled already, None where no labelled texts were given; "rows": see `corpus.active.records.batch_rows`.
    RAISES CalibError: every fault of the input.
    """
    nlp, pipe = run.open()
    tags = hunted_tags(pipe, run)
    labelled = labelled_texts(nlp, run.exclude) if run.exclude else None
    blocks = run.score_blocks(nlp, pipe)
    found = choose_from_all(blocks, run, tags, labelled) if run.needs_all else choose_from_blocks(blocks, run, tags)
    result = {"pipe": pipe.name, "attr": pipe.attr, **found.result}
    if run.format in TOOLS:
        deliver_tasks(run, pipe, found, result)
        return result
    if run.output is not None:
        write_batch(
            run.output, result, lambda: batch_docs(nlp, pipe, run.data, found, run.fields, silent=run.silent), run.raw_cells
        )
    deliver(result, lambda: show_batch(result, run.output), output=None, format=run.format, silent=run.silent)
    return result
