"""Choose unlabelled texts to annotate, to train on or adapt to.

The command `spacy calib select`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...cli.shared.command import check_option, command, option
from ...cli.shared.options import (
    CalibratedModel,
    ChosenAttr,
    ChosenComponent,
    Code,
    Columns,
    DocKey,
    ForceFile,
    GpuId,
    NProcess,
    RawCells,
    Silent,
    Texts,
)
from ...cli.shared.run import Run, unit_of
from ...cli.shared.screen import TableColumn, msg, number, shorten, show_rows, whole
from ...pairs.documents import DOCUMENT
from .messages import calib_error
from .queue.orders import LABEL
from .queues import MIN_WORDS, SUFFIXES, WORDS_HELP, QueueFormat, QueueOutput, deliver_queue, labelled_texts, write_docs

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pairs.keyed import Digests
    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator
    from .queue.choosing import Queue, QueuePlan
    from .queue.tasks import Task

DEFAULT_N = 100
# Number of documents to adapt to.
N_TO_ADAPT = 10
PURPOSES = ("train", "adapt")
KINDS = ("sentence", DOCUMENT)
# The order rare-tag without --tag looks for the rarest tags, which together have at most this share of the fit's tokens.
RARE_SHARE = 0.01


SELECT_SUFFIXES = {**SUFFIXES, ".spacy": "spacy"}
PURPOSE_HELP = (
    "Purpose of the labels. train: doubtful sentences to train on. adapt: a random sample of whole documents, stratified by doubt, for "
    "`adapt` and `expect --gold`"
)
OUTPUT_HELP = "File for the batch; without --format its suffix decides: .json (all results), .jsonl, .csv, or .spacy (with the predicted annotation)"
N_DEFAULT = f"{DEFAULT_N} unless --max-words is given, {N_TO_ADAPT} with --for adapt"
UNIT_DEFAULT = "sentence; document with --for adapt, and for text categories"
TAGS_DEFAULT = "the rarest, together 1 % of the fit's tokens"
MAX_HELP = "Maximum number of words; the orders expected-errors and rare-tag then rank units by their value per word"
PER_DOC_HELP = "Maximum number of sentences of one document; documents take turns"

Unit = Annotated[str | None, option("Unit that is labelled", "-u", words=KINDS, show_default=UNIT_DEFAULT)]
Order = Annotated[str | None, option("What units are ordered by", words=tuple(LABEL), show_default="least-confident")]
Tags = Annotated[
    list[str] | None,
    option("With --order rare-tag, the tag to look for; may be repeated", "--tag", "-T", show_default=TAGS_DEFAULT),
]


@command(example="./calibrated texts.txt --order margin --max-words 2000 -o batch.jsonl")
def select(
    model: CalibratedModel,
    data: Texts,
    *,
    purpose: Annotated[str, option(PURPOSE_HELP, "--for", words=PURPOSES)] = "train",
    unit: Unit = None,
    order: Order = None,
    top: Annotated[int | None, option("Number of units", "--top", "--n", "-n", show_default=N_DEFAULT)] = None,
    max_words: Annotated[int | None, option(MAX_HELP)] = None,
    min_words: Annotated[int | None, option(WORDS_HELP, show_default=f"{MIN_WORDS}")] = None,
    tags: Tags = None,
    per_doc: Annotated[int | None, option(PER_DOC_HELP)] = None,
    seed: Annotated[int, option("Seed of random samples (--order random, --for adapt)")] = 0,
    exclude: Annotated[
        list[Path] | None, option("File of texts that are labelled already (.jsonl, .spacy, .csv, .txt); may be repeated", "-x")
    ] = None,
    output: Annotated[Path | None, option(OUTPUT_HELP, "-o")] = None,
    format: QueueFormat = "table",
    raw_cells: RawCells = False,
    component: ChosenComponent = None,
    attr: ChosenAttr = None,
    columns: Columns = None,
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Choose unlabelled texts to label next: the sentences whose labels are most likely wrong, or that have rare tags, each with
    the reason. Or sample documents at random, to adapt to texts of a new kind or to estimate the accuracy on them (--for
    adapt).

    RETURNS (dict): "pipe", "attr", "for", "order" ("spread" for documents to adapt to), "unit", "per_word", "tags" of the order
        rare-tag; "pool" and "batch": numbers of "units", "words", "expected_errors", "docs", and "entities" for links;
        "excluded": number of units labelled already, None without --exclude; "rows": a record of each unit, as
        `plugins.review.queue.formats.to_record` makes it.
    RAISES CalibError: any bad input.
    """
    queue_output = QueueOutput(output, format, raw_cells, silent, SELECT_SUFFIXES)
    batch = Batch(purpose, order, unit, top, max_words, min_words, per_doc, seed, tuple(tags or ()))
    how: dict[str, Any] = {"doc_key": doc_key, "n_process": n_process, "gpu_id": gpu_id, "code": code}
    run = Run(model, data, attr=attr, component=component, columns=columns, force=force, silent=silent, **how)
    nlp = run.begin(queue_output.files(), read=exclude or [])
    pipe = run.pipe(nlp, unit=unit)
    plan = batch.make_plan(pipe, find_tags(pipe, batch), labelled_texts(nlp, exclude) if exclude else None)
    tasks, labels, result = choose_batch(run, nlp, pipe, plan, batch)
    if queue_output.form == "spacy" and output is not None:
        write_docs(run, nlp, pipe, result["rows"], output)
    deliver_queue(queue_output, pipe, result, tasks, labels, lambda: show_batch(result, output))
    return result


@dataclass(frozen=True)
class Batch:
    """The options of `select` that determine which units are chosen. RAISES C056: two options exclude one another."""

    purpose: str
    order: str | None
    unit: str | None
    top: int | None
    max_words: int | None
    min_words: int | None
    per_doc: int | None
    seed: int
    tags: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.adapts:
            for flag, value in (("--order", self.order), ("--max-words", self.max_words), ("--per-doc", self.per_doc)):
                check_option(flag, value is None, "left out with --for adapt, which samples documents at random", value)
            check_option("--unit", self.unit != "sentence", "document with --for adapt", self.unit)
        check_option(
            "--tag", not self.tags or self.order == "rare-tag", "left out unless --order is rare-tag", ", ".join(self.tags)
        )
        check_option("--per-doc", self.per_doc is None or self.unit != DOCUMENT, "left out with --unit document", self.per_doc)

    @property
    def adapts(self) -> bool:
        return self.purpose == "adapt"

    def make_plan(self, pipe: Calibrator, tags: Sequence[str] = (), labelled_keys: Digests | None = None) -> QueuePlan:
        """Return the settings of the queue; documents to adapt to are stratified by their expected errors per word.

        tags (Sequence[str]): Rare tags to look for. labelled_keys (Digests | None): Keys of texts that are labelled already.
        RAISES C265: sentences are requested, but documents have the labels.
        """
        from .queue.choosing import QueuePlan

        order = LABEL[self.order or ("expected-errors" if self.adapts else "least-confident")]
        default_unit = DOCUMENT if self.adapts or pipe.fit_info.row_unit == DOCUMENT else "sentence"
        default_n = N_TO_ADAPT if self.adapts else DEFAULT_N if self.max_words is None else None
        return QueuePlan(
            unit_of(pipe, self.unit or default_unit, whole=True),
            order,
            tags,
            self.seed,
            per_word=order.adds_up and (self.adapts or self.max_words is not None),
            min_words=MIN_WORDS if self.min_words is None else self.min_words,
            n=self.top or default_n,
            max_words=self.max_words,
            per_doc=self.per_doc,
            is_stratified=self.adapts,
            labelled_keys=labelled_keys,
        )


def choose_batch(
    run: Run, nlp: Language, pipe: Calibrator, plan: QueuePlan, batch: Batch
) -> tuple[Sequence[Task], Iterable[str], dict[str, Any]]:
    """Score the texts and choose the units to label.

    RETURNS (tuple): The tasks; the labels that got a score; the result as a dict, with the sizes of pool and batch, and a row
    for each chosen unit.
    """
    from ...pipe.label_names import shown_names
    from .queue.choosing import queue_of
    from .queue.formats import to_record
    from .queue.tasks import tasks_of

    has_links = pipe.source.annotation(pipe.lookup.component()).spans_are_units
    pool: Counter[str] = Counter()
    sum_corpus = partial(sum_units, kind=plan.kind, has_links=has_links)
    queue = queue_of(run.score_blocks(nlp, pipe), plan, lambda corpus: pool.update(sum_corpus(corpus)))
    if queue.n_blocks == 1:  # `queue_of` counts blocks if there are several; the queue of a single one has all of its texts
        pool.update(sum_corpus(queue.corpus))
    check_not_empty(queue, plan, pool["units"])
    tasks = tasks_of(queue, plan.tags, has_links, shown_names(pipe))
    rows = [to_record(task) for task in tasks]
    result = {
        "pipe": pipe.name,
        "attr": pipe.attr,
        "for": batch.purpose,
        "order": "spread" if batch.adapts else batch.order or "least-confident",
        "unit": plan.kind,
        "per_word": plan.per_word,
        "tags": list(plan.tags),
        "pool": dict(pool),
        "batch": {
            "units": len(rows),
            "words": sum(row["words"] for row in rows),
            "expected_errors": sum(row["expected_errors"] for row in rows),
            "docs": len({row["doc"] for row in rows}),
            **({"entities": sum(len(row["marks"]) for row in rows)} if has_links else {}),
        },
        "excluded": None if plan.labelled_keys is None else queue.left_out["labelled"],
        "rows": rows,
    }
    return tasks, queue.corpus.tags_met(), result


def find_tags(pipe: Calibrator, batch: Batch) -> tuple[str, ...]:
    """Return the tags that the order rare-tag looks for; () for other orders. RAISES C090: the pipe has no such tag. C093: none of its tags is rare."""
    from .queue.orders import rare_tags

    if batch.order != "rare-tag":
        return ()
    labels = pipe.lookup.labels()
    unknown = [tag for tag in batch.tags if tag not in labels]
    if unknown:
        raise calib_error("C090", name=pipe.name, tag=unknown[0], available=", ".join(labels))
    assert pipe.groups is not None
    tags = tuple(batch.tags) or tuple(rare_tags(labels, pipe.groups, RARE_SHARE))
    if not tags:
        raise calib_error("C093", name=pipe.name, share=RARE_SHARE)
    return tags


def sum_units(corpus: ScoredCorpus, kind: str, has_links: bool = False) -> dict[str, Any]:
    """Count the units, words, expected errors and Docs of a corpus. kind (str): What a unit is. has_links (bool): Count the linked entities, too."""
    from .queue.units import units_of

    units = units_of(corpus, kind)
    return {
        "units": len(units),
        "words": int(units.counts(corpus.lengths).sum()),
        "expected_errors": float((1 - corpus.calibrated[corpus.is_counted]).sum()),
        "docs": corpus.n_docs,
        **({"entities": int(corpus.is_counted.sum())} if has_links else {}),
    }


def check_not_empty(queue: Queue, plan: QueuePlan, n: int) -> None:
    """Check that a unit was chosen. n (int): Number of units in the pool. RAISES C091: none is a candidate. C094: all exceed the maximum of words."""
    if len(queue.order):
        return
    if queue.has_candidates:
        raise calib_error("C094", unit=plan.kind, max_words=plan.max_words)
    content = f"score for {', '.join(plan.tags)}" if plan.tags else f"scored {queue.corpus.row_unit}"
    content += f" and {plan.min_words} words (--min-words)"
    raise calib_error("C091", n=n, unit=plan.kind, excluded=queue.left_out["labelled"], what=content)


# What is printed

N_SHOWN, TEXT_WIDTH = 20, 60
PRIORITY_MEANINGS = {
    "least-confident": "probability that its most doubtful label is wrong",
    "expected-errors": "expected number of wrong labels",
    "margin": "probability of the best other label minus that of the predicted label (mostly below 0), as a mean of its words",
    "entropy": "entropy of the labels, as a mean of its words",
    "rare-tag": "probability that it has such a tag",
    "random": "random number",
    "spread": "expected number of wrong labels",
}


def show_batch(result: dict[str, Any], output: Path | None) -> None:
    batch, pool, order, unit = result["batch"], result["pool"], result["order"], result["unit"]
    adapts = result["for"] == "adapt"
    msg.divider(f"{unit.capitalize()}s {'to adapt to, stratified by doubt' if adapts else f'to label, by {order}'}")
    if result["tags"]:
        msg.text(f"Rare tags: {', '.join(result['tags'])}")
    show_rows(result["rows"][:N_SHOWN], _COLUMNS)
    msg.text(f"Priority: {PRIORITY_MEANINGS[order]}{', divided by the words' if result['per_word'] else ''}.")
    if adapts:
        msg.text(
            f"The documents, sorted by priority, were cut into {batch['units']:,} equal parts, and one was sampled at random from each (without the shortest ones, "
            "a tenth of the words): a random sample, as `adapt` and `expect --gold` need it. They are in random order, so the first few are a random sample, "
            "too. Label them whole."
        )
    if batch["units"] > N_SHOWN:
        msg.text(f"... and {batch['units'] - N_SHOWN:,} more; --output writes them all.")
    has_documents = any(row["reason"]["word"] is None for row in result["rows"])
    for name, part in (("Batch", batch), ("Pool", pool)):
        has_links = "entities" in part
        share = 100 * part["expected_errors"] / max(1, part["entities" if has_links else "units" if has_documents else "words"])
        entities, wrong = (f"{part['entities']:,} entities, ", "links") if has_links else ("", "labels")
        msg.text(
            f"{name}: {part['units']:,} {unit}s of {part['docs']:,} documents, {part['words']:,} words, {entities}"
            f"{part['expected_errors']:,.1f} wrong {wrong} expected ({share:.1f}\u00a0%)."
        )
    if result["excluded"] is not None:
        msg.text(f"{result['excluded']:,} {unit}s of the pool are labelled already.")
    if output is not None:
        msg.good(f"The batch: {output}")


def _format_reason(reason: dict[str, Any]) -> str:
    tags = [(reason["tag"], reason["probability"]), *list(reason["alternatives"].items())[:2]]
    word = "" if reason["word"] is None else f"{shorten(reason['word'], 20)}: "
    return word + " · ".join(f"{tag} {probability:.2f}" for tag, probability in tags)


_COLUMNS = (
    TableColumn("Rank", "rank"),
    TableColumn("Doc", "doc"),
    TableColumn("Sent", "sentence"),
    TableColumn("Priority", "priority", number),
    TableColumn("Words", "words", whole),
    TableColumn("Because of", "reason", _format_reason, "l"),
    TableColumn("Text", "text", lambda text: shorten(text, TEXT_WIDTH), "l"),
)
