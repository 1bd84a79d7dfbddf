"""`spacy calib select`: which unlabelled sentences to label next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import typer

from ..corpus.active.pieces import PIECE_KINDS
from ..corpus.active.priority import ADDITIVE, BY, SIGNALS
from ..errors import calib_error
from .shared.checks import check_option
from .shared.command import choice, command
from .shared.examples import run_pipes
from .shared.options import FirstAttr, Format, Texts
from .shared.results import deliver, write_json
from .shared.run import Run
from .shared.scoring import pipes_to_run
from .shared.screen import msg, shorten
from .shared.texts import stream_examples

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ..corpus.active.pieces import Pieces
    from ..corpus.scored import ScoredCorpus
    from ..pipe.component import Calibrator
    from ..types import Floats, Ints

DEFAULT_N = 100
# Shorter ones are most often lines of dashes, addresses and names: doubtful, and nothing to learn from.
MIN_WORDS = 3
SUFFIXES = (".jsonl", ".spacy", ".csv", ".json")
N_SHOWN, TEXT_WIDTH = 20, 60
SCORE_MEANS = {
    "least-confident": "how likely its most doubtful label is wrong",
    "expected-errors": "wrong labels to be expected",
    "margin": "how much likelier the best other label is than the one it has (mostly below 0: less likely), as a mean of its words",
    "entropy": "entropy of the labels, as a mean of its words",
    "rare-tag": "how likely it holds such a tag",
    "random": "place in a random order",
}


@dataclass(frozen=True)
class SelectOptions(Run):
    """What `select` chooses, and how much of it."""

    gold_preproc: ClassVar[bool] = False  # type: ignore[misc]  # there is no gold yet

    data: Texts
    _: KW_ONLY
    n: Annotated[int | None, typer.Option("--top", "--n", "-n", help=f"How many; {DEFAULT_N} unless --max-words is given")] = (
        None
    )
    max_words: Annotated[int | None, typer.Option("--max-words", help="Choose at most that many words")] = None
    min_words: Annotated[int, typer.Option("--min-words", help="Leave out what has fewer words (with a letter or a digit)")] = (
        MIN_WORDS
    )
    by: Annotated[str, choice(BY, "--by", help="What makes one worth labelling")] = "least-confident"
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
    unit: Annotated[str, choice(PIECE_KINDS, "--unit", "-u", help="What is labelled as one piece")] = "sentence"
    exclude: Annotated[
        list[Path],
        typer.Option("--exclude", "-x", help="Texts labelled already (.jsonl, .spacy, .csv, .txt); may be repeated"),
    ] = field(default_factory=list)
    seed: Annotated[int, typer.Option("--seed", help="Of --by random")] = 0
    attr: FirstAttr = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File for the batch: .jsonl, .spacy (with the predicted annotation), .csv (cells that begin with = + - @ get an apostrophe; .jsonl is exact) or .json",
        ),
    ] = None
    format: Format = "table"

    def check_options(self) -> None:
        """RAISES C056: a value out of range, or two that exclude one another."""
        check_option("--rare-share", 0 < self.rare_share < 1, "between 0 and 1", self.rare_share)
        check_option("--tag", not self.tags or self.by == "rare-tag", "left out unless --by is rare-tag", ", ".join(self.tags))
        additive = not self.per_word or self.by in ADDITIVE
        check_option("--per-word", additive, f"left out unless --by is one of {', '.join(ADDITIVE)}", f"--by {self.by}")
        check_option("--per-doc", self.per_doc is None or self.unit != "doc", "left out with --unit doc", self.per_doc)
        named = self.output is None or self.output.suffix in SUFFIXES
        check_option("--output", named, f"a file that ends in {', '.join(SUFFIXES)}", self.output)

    @property
    def limit(self) -> int | None:
        """Units to choose at most."""
        return DEFAULT_N if self.n is None and self.max_words is None else self.n

    @property
    def divides(self) -> bool:
        """Whether priorities are divided by the words."""
        wanted = self.max_words is not None if self.per_word is None else self.per_word
        return wanted and self.by in ADDITIVE

    def read_files(self) -> list[Path]:
        return self.exclude


@command(
    SelectOptions,
    does="Pick unlabelled texts to annotate next, to train on",
    example="./calibrated texts.txt --by margin --max-words 2000 -o batch.jsonl",
)
def select(run: SelectOptions) -> dict[str, Any]:
    """
    Choose from unlabelled texts what is worth labelling next: the sentences whose
    labels are most likely wrong, or that hold rare tags, each with the reason.

    RETURNS (dict): "pipe", "attr", "by", "signal", "unit", "per_word", "tags" that were hunted; "pool" and "batch": "units", "words",
        "expected_errors", "docs"; "excluded": units of the pool whose text is labelled already, None where no labelled texts were given; "rows": see `corpus.active.records.batch_rows`.
    RAISES CalibError: every fault of the input.
    """
    nlp, pipe = run.open()
    tags = hunted_tags(pipe, run)
    labelled = labelled_texts(nlp, run.exclude) if run.exclude else None
    corpus, _ = run.score(nlp, pipe, judge=False)
    found = choose_from(corpus, run, tags, labelled)
    result = {"pipe": pipe.name, "attr": pipe.attr, **found.result}
    if run.output is not None:
        write_batch(run.output, result, lambda: batch_docs(nlp, pipe, run.data, found, silent=run.silent))
    deliver(result, lambda: show_batch(result, run.output), output=None, format=run.format, silent=run.silent)
    return result


def hunted_tags(pipe: Calibrator, options: SelectOptions) -> tuple[str, ...]:
    """The tags to look for; () for other orders.

    RAISES C090: the pipe has no tag of this name. C093: none of its tags is rare.
    """
    from ..corpus.active.rare import rare_tags

    if options.by != "rare-tag":
        return ()
    labels = pipe.lookup.labels()
    unknown = [tag for tag in options.tags if tag not in labels]
    if unknown:
        raise calib_error("C090", name=pipe.name, tag=unknown[0], available=", ".join(labels))
    assert pipe.groups is not None
    tags = tuple(options.tags) or tuple(rare_tags(labels, pipe.groups, options.rare_share))
    if not tags:
        raise calib_error("C093", name=pipe.name, share=options.rare_share)
    return tags


def labelled_texts(nlp: Language, paths: Sequence[Path]) -> set[str]:
    """The keys of the documents in these files, and of their sentences.

    RAISES C092: a .csv file cannot be read. C051 to C053, C073, C074: the same of another file.
    """
    from ..corpus.active.batch import text_key
    from ..corpus.active.files import csv_texts

    keys: set[str] = set()
    for path in paths:
        if path.suffix == ".csv":
            keys.update(text_key(text) for text in csv_texts(path))
            continue
        for example in stream_examples(nlp, path, required=False):
            doc = example.reference
            keys.add(text_key(doc.text))
            if doc.has_annotation("SENT_START"):
                keys.update(text_key(sentence.text) for sentence in doc.sents)
    return keys


@dataclass(frozen=True, eq=False)
class Found:
    """units (Pieces): Of the pool. chosen (Ints): Places in it, most urgent first. result (dict): What `select` returns of it."""

    units: Pieces
    chosen: Ints
    result: dict[str, Any]


def choose_from(corpus: ScoredCorpus, options: SelectOptions, tags: Sequence[str], given: set[str] | None) -> Found:
    """given (set | None): Keys of labelled texts. RAISES C091: nothing can be chosen. C094: every unit has more words than may be chosen."""
    from ..corpus.active.batch import labelled_keys, text_key
    from ..corpus.active.pieces import pieces_of
    from ..corpus.active.priority import priorities, token_values
    from ..corpus.active.records import batch_rows

    units = pieces_of(corpus, options.unit)
    keys = [text_key(corpus.text(*bounds)) for bounds in zip(units.first.tolist(), units.last.tolist(), strict=True)]
    labelled = labelled_keys(corpus, units, keys, given or ())
    values = token_values(corpus, options.by, options.signal, tags)
    scores = priorities(corpus, units, values, options.by, options.seed)
    if options.divides:
        scores = scores / units.words.clip(1)
    scores = np.where(units.sums(corpus.is_word.astype(np.float64)) < options.min_words, -np.inf, scores)
    what = f"score for {', '.join(tags)}" if tags else "scored token"
    what += f" and {options.min_words} words (--min-words)"
    chosen = _chosen(units, corpus.documents_of(units.docs), scores, keys, options, labelled, what)
    rows = batch_rows(corpus, units, chosen, scores, values, whole_docs=options.unit == "doc", tags=tags)
    result = {
        "by": options.by,
        "signal": options.signal,
        "unit": options.unit,
        "per_word": options.divides,
        "tags": list(tags),
        **_sums(corpus, units, rows),
        "excluded": None if given is None else sum(key in labelled for key in keys),
        "rows": rows,
    }
    return Found(units, chosen, result)


def _chosen(
    units: Pieces, documents: Ints, scores: Floats, keys: list[str], options: SelectOptions, labelled: set[str], what: str
) -> Ints:
    """what (str): What a unit needs to be chosen. RAISES C091, C094: see `choose_from`."""
    from ..corpus.active.batch import choose

    within = partial(
        choose, units, scores, keys, n=options.limit, per_doc=options.per_doc, excluded=labelled, documents=documents
    )
    chosen = within(max_words=options.max_words)
    if len(chosen):
        return chosen
    possible = within()
    if len(possible):
        raise calib_error("C094", unit=options.unit, max_words=options.max_words)
    raise calib_error("C091", n=len(units), unit=options.unit, excluded=sum(key in labelled for key in keys), what=what)


def _sums(corpus: ScoredCorpus, units: Pieces, rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What pool and batch are in all."""
    return {
        "pool": {
            "units": len(units),
            "words": int(units.words.sum()),
            "expected_errors": float((1 - corpus.calibrated[corpus.counted]).sum()),
            "docs": corpus.n_docs,
        },
        "batch": {
            "units": len(rows),
            "words": sum(row["words"] for row in rows),
            "expected_errors": sum(row["expected_errors"] for row in rows),
            "docs": len({row["doc"] for row in rows}),
        },
    }


def write_batch(path: Path, result: dict[str, Any], docs: Callable[[], Sequence[Doc]]) -> None:
    """docs (Callable): Gives the chosen units as Docs, in order; called for .spacy.

    RAISES C055: the file cannot be written.
    """
    from spacy.tokens import DocBin

    from ..corpus.active.files import csv_bytes, jsonl_bytes
    from .shared.atomic import write_file

    if path.suffix == ".json":
        write_json(path, result)
    elif path.suffix == ".spacy":
        write_file(path, DocBin(docs=docs(), store_user_data=True).to_bytes())
    else:
        write_file(path, (jsonl_bytes if path.suffix == ".jsonl" else csv_bytes)(result["rows"]))


def batch_docs(nlp: Language, pipe: Calibrator, data: Path, found: Found, *, silent: bool) -> list[Doc]:
    """The chosen units as Docs with the predicted annotation, in order. Their documents run through the pipeline once more: scoring lets go
    of every Doc, so that a pool of any length fits into memory.
    """
    from ..doc.cutting import cut

    rows = found.result["rows"]
    rows_of: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        rows_of.setdefault(row["doc"], []).append(row)
    examples = (example for number, example in enumerate(stream_examples(nlp, data)) if number in rows_of)
    done = run_pipes(nlp, examples, pipes_to_run(nlp, pipe, sentences=True), silent=silent, what="Reading the batch")
    docs: dict[int, Doc] = {}
    for number, example in zip(sorted(rows_of), done, strict=True):
        for key, value in example.reference.user_data.items():
            example.predicted.user_data.setdefault(key, value)
        for row in rows_of[number]:
            docs[row["rank"]] = cut(example.predicted, row["start"], row["end"])
    return [docs[row["rank"]] for row in rows]


def show_batch(result: dict[str, Any], output: Path | None) -> None:
    """Print the first rows, and what the batch is in all."""
    msg.divider(f"{result['unit'].capitalize()}s to label, by {result['by']} ({result['signal']} scores)")
    if result["tags"]:
        msg.text(f"Tags hunted: {', '.join(result['tags'])}")
    rows = [_table_row(row) for row in result["rows"][:N_SHOWN]]
    header = ("Rank", "Doc", "Sent", "Score", "Words", "Because of", "Text")
    msg.table(rows, header=header, divider=True, aligns=(*"rrrrr", *"ll"), max_col=2 * TEXT_WIDTH)
    msg.text(f"Score: {SCORE_MEANS[result['by']]}{', divided by the words' if result['per_word'] else ''}.")
    batch, pool = result["batch"], result["pool"]
    if batch["units"] > N_SHOWN:
        msg.text(f"... and {batch['units'] - N_SHOWN:,} more; --output writes them all.")
    for name, part in (("Batch", batch), ("Pool", pool)):
        share = 100 * part["expected_errors"] / max(1, part["words"])
        msg.text(
            f"{name}: {part['units']:,} {result['unit']}s of {part['docs']:,} documents, {part['words']:,} words, "
            f"{part['expected_errors']:,.1f} wrong labels expected ({share:.1f}\u00a0%)."
        )
    if result["excluded"] is not None:
        msg.text(f"{result['excluded']:,} {result['unit']}s of the pool are labelled already.")
    if output is not None:
        msg.good(f"The batch: {output}")


def _table_row(row: dict[str, Any]) -> tuple[str, ...]:
    reason = row["reason"]
    tags = [(reason["tag"], reason["probability"]), *list(reason["alternatives"].items())[:2]]
    because = f"{shorten(reason['word'], 20)}: " + " · ".join(f"{tag} {probability:.2f}" for tag, probability in tags)
    sentence = "-" if row["sentence"] is None else str(row["sentence"])
    return (
        str(row["rank"]),
        str(row["doc"]),
        sentence,
        f"{row['score']:.4f}",
        f"{row['words']:,}",
        because,
        shorten(row["text"], TEXT_WIDTH),
    )
