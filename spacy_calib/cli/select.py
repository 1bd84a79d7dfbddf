"""`spacy calib select`: which unlabelled sentences to label next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from ..corpus.active.pieces import PIECE_KINDS
from ..corpus.active.priority import ADDITIVE, BY, SIGNALS
from ..errors import calib_error
from .shared.checks import check_format, check_numbers, check_option
from .shared.examples import run_pipes
from .shared.options import Calibrated, Code, DocKey, FirstAttr, ForceFile, Format, GpuId, NProcess, Silent, Texts, one_of
from .shared.outputs import check_files, wanted_output
from .shared.results import deliver, write_json
from .shared.scoring import open_pipeline, pipes_to_run, score
from .shared.screen import shorten, user_errors
from .shared.texts import stream_examples, text_files

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


def select_cli(
    # fmt: off
    model: Calibrated,
    data: Texts,
    n: int = typer.Option(None, "--top", "--n", "-n", help=f"How many; {DEFAULT_N} unless --max-words is given"),
    max_words: int = typer.Option(None, "--max-words", help="Choose at most that many words"),
    min_words: int = typer.Option(MIN_WORDS, "--min-words", help="Leave out what has fewer words (with a letter or a digit)"),
    by: str = typer.Option("least-confident", "--by", help="What makes one worth labelling", **one_of(BY)),
    signal: str = typer.Option("calibrated", "--signal", help="Scores to order by", **one_of(SIGNALS)),
    per_word: bool = typer.Option(
        None,
        "--per-word/--per-sentence",
        help="Expected errors, or P(rare tag), of a word or of a sentence; per word with --max-words",
    ),
    rare_share: float = typer.Option(
        0.01, "--rare-share", help="Hunt the rarest tags, which together held at most this share of tokens at the fit"
    ),
    tag: list[str] = typer.Option([], "--tag", "-T", help="Hunt this tag; may be repeated"),
    per_doc: int = typer.Option(None, "--per-doc", help="At most that many sentences of one document, round robin"),
    unit: str = typer.Option("sentence", "--unit", "-u", help="What is labelled as one piece", **one_of(PIECE_KINDS)),
    exclude: list[Path] = typer.Option(
        [], "--exclude", "-x", help="Texts labelled already (.jsonl, .spacy, .csv, .txt); may be repeated"
    ),
    seed: int = typer.Option(0, "--seed", help="Of --by random"),
    attr: FirstAttr = None,
    output: Path = typer.Option(
        None,
        "--output",
        "-o",
        help="File for the batch: .jsonl, .spacy (with the predicted annotation), .csv (cells that begin with = + - @ get an apostrophe; .jsonl is exact) or .json",
    ),
    format: Format = "table",
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = False,
    # fmt: on
) -> None:
    """
    Choose from unlabelled texts what is worth labelling next: the sentences whose
    labels are most likely wrong, or that hold rare tags, each with the reason.
    """
    with user_errors():
        settings = Settings(by, signal, n, max_words, per_word, rare_share, tuple(tag), per_doc, unit, seed, min_words)
        select(
            model, data, settings, exclude=exclude, attr=attr, output=output, format=format, doc_key=doc_key, n_process=n_process,
            gpu_id=gpu_id, code=code, force=force, silent=silent,
        )  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What to choose; see the options of the command. n, max_words, per_doc (int | None): No bound where None, but `DEFAULT_N` sentences
    where neither n nor max_words is given. per_word (bool | None): None says: with max_words.
    """

    by: str = "least-confident"
    signal: str = "calibrated"
    n: int | None = None
    max_words: int | None = None
    per_word: bool | None = None
    rare_share: float = 0.01
    tags: tuple[str, ...] = ()
    per_doc: int | None = None
    unit: str = "sentence"
    seed: int = 0
    min_words: int = MIN_WORDS

    @property
    def limit(self) -> int | None:
        """Units to choose at most."""
        return DEFAULT_N if self.n is None and self.max_words is None else self.n

    @property
    def divides(self) -> bool:
        """Whether priorities are divided by the words."""
        wanted = self.max_words is not None if self.per_word is None else self.per_word
        return wanted and self.by in ADDITIVE

    def check(self) -> None:
        """RAISES C056: a value out of range, or two that exclude one another."""
        for option, given, allowed in (
            ("--by", self.by, BY),
            ("--signal", self.signal, SIGNALS),
            ("--unit", self.unit, PIECE_KINDS),
        ):
            check_option(option, given in allowed, f"one of {', '.join(allowed)}", repr(given))
        check_numbers(top=self.n, max_words=self.max_words, per_doc=self.per_doc, min_words=self.min_words, seed=self.seed)
        check_option("--rare-share", 0 < self.rare_share < 1, "between 0 and 1", self.rare_share)
        check_option("--tag", not self.tags or self.by == "rare-tag", "left out unless --by is rare-tag", ", ".join(self.tags))
        additive = not self.per_word or self.by in ADDITIVE
        check_option("--per-word", additive, f"left out unless --by is one of {', '.join(ADDITIVE)}", f"--by {self.by}")
        check_option("--per-doc", self.per_doc is None or self.unit != "doc", "left out with --unit doc", self.per_doc)


def select(
    model: str,
    data: Path,
    settings: Settings | None = None,
    *,
    exclude: Sequence[Path] = (),
    attr: str | None = None,
    output: Path | None = None,
    format: str = "table",
    doc_key: str | None = None,
    n_process: int = 1,
    gpu_id: int = -1,
    code: Path | None = None,
    force: bool = False,
    silent: bool = True,
) -> dict[str, Any]:
    """What the command does.

    RETURNS (dict): "pipe", "attr", "by", "signal", "unit", "per_word", "tags" that were hunted; "pool" and "batch": "units", "words",
        "expected_errors", "docs"; "excluded": units of the pool whose text is labelled already, None where no labelled texts were given; "rows": see `active.records.batch_rows`.
    RAISES CalibError: every fault of the input.
    """
    settings = Settings() if settings is None else settings
    settings.check()
    check_numbers(n_process=n_process, gpu_id=gpu_id)
    check_format(format)
    check_option("--output", output is None or output.suffix in SUFFIXES, f"a file that ends in {', '.join(SUFFIXES)}", output)
    text_files(data)
    check_files(wanted_output(output), force, inputs=[data, *exclude, code], model=model)
    nlp, pipe = open_pipeline(model, attr, code=code, gpu_id=gpu_id)
    tags = hunted_tags(pipe, settings)
    labelled = labelled_texts(nlp, exclude) if exclude else None
    examples = stream_examples(nlp, data, doc_key=doc_key)
    corpus = score(nlp, pipe, examples, sentences=True, n_process=n_process, silent=silent, what="Scoring")
    found = choose_from(corpus, settings, tags, labelled)
    result = {"pipe": pipe.name, "attr": pipe.attr, **found.result}
    if output is not None:
        write_batch(output, result, lambda: batch_docs(nlp, pipe, data, found, silent=silent))
    deliver(result, lambda: show_batch(result, output), output=None, format=format, silent=silent)
    return result


def hunted_tags(pipe: Calibrator, settings: Settings) -> tuple[str, ...]:
    """The tags to look for; () for other orders.

    RAISES C090: the pipe has no tag of this name. C093: none of its tags is rare.
    """
    from ..corpus.active.rare import rare_tags

    if settings.by != "rare-tag":
        return ()
    labels = pipe.lookup.labels()
    unknown = [tag for tag in settings.tags if tag not in labels]
    if unknown:
        raise calib_error("C090", name=pipe.name, tag=unknown[0], available=", ".join(labels))
    assert pipe.groups is not None
    tags = settings.tags or tuple(rare_tags(labels, pipe.groups, settings.rare_share))
    if not tags:
        raise calib_error("C093", name=pipe.name, share=settings.rare_share)
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


def choose_from(corpus: ScoredCorpus, settings: Settings, tags: Sequence[str], given: set[str] | None) -> Found:
    """given (set | None): Keys of labelled texts. RAISES C091: nothing can be chosen. C094: every unit has more words than may be chosen."""
    from ..corpus.active.batch import labelled_keys, text_key
    from ..corpus.active.pieces import pieces_of
    from ..corpus.active.priority import priorities, token_values
    from ..corpus.active.records import batch_rows

    units = pieces_of(corpus, settings.unit)
    keys = [text_key(corpus.text(*bounds)) for bounds in zip(units.first.tolist(), units.last.tolist(), strict=True)]
    labelled = labelled_keys(corpus, units, keys, given or ())
    values = token_values(corpus, settings.by, settings.signal, tags)
    scores = priorities(corpus, units, values, settings.by, settings.seed)
    if settings.divides:
        scores = scores / units.words.clip(1)
    scores = np.where(units.sums(corpus.is_word.astype(np.float64)) < settings.min_words, -np.inf, scores)
    what = f"score for {', '.join(tags)}" if tags else "scored token"
    what += f" and {settings.min_words} words (--min-words)"
    chosen = _chosen(units, corpus.documents_of(units.docs), scores, keys, settings, labelled, what)
    rows = batch_rows(corpus, units, chosen, scores, values, whole_docs=settings.unit == "doc", tags=tags)
    result = {
        "by": settings.by,
        "signal": settings.signal,
        "unit": settings.unit,
        "per_word": settings.divides,
        "tags": list(tags),
        **_sums(corpus, units, rows),
        "excluded": None if given is None else sum(key in labelled for key in keys),
        "rows": rows,
    }
    return Found(units, chosen, result)


def _chosen(
    units: Pieces, documents: Ints, scores: Floats, keys: list[str], settings: Settings, labelled: set[str], what: str
) -> Ints:
    """what (str): What a unit needs to be chosen. RAISES C091, C094: see `choose_from`."""
    from ..corpus.active.batch import choose

    within = partial(
        choose, units, scores, keys, n=settings.limit, per_doc=settings.per_doc, excluded=labelled, documents=documents
    )
    chosen = within(max_words=settings.max_words)
    if len(chosen):
        return chosen
    possible = within()
    if len(possible):
        raise calib_error("C094", unit=settings.unit, max_words=settings.max_words)
    raise calib_error("C091", n=len(units), unit=settings.unit, excluded=sum(key in labelled for key in keys), what=what)


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
    from .shared.screen import msg

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
