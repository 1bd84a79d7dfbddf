"""Choose unlabelled texts to annotate, to train on or adapt to.

`spacy calib select`: which unlabelled sentences, or documents, to label next.
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
    from .queue.choosing import Plan, Queue
    from .queue.tasks import Task

DEFAULT_N = 100
# Documents to adapt to.
N_TO_ADAPT = 10
PURPOSES = ("train", "adapt")
KINDS = ("sentence", DOCUMENT)
# The rarest tags, which together held at most this share of the tokens at the fit, are hunted where none is named.
RARE_SHARE = 0.01


SELECT_SUFFIXES = {**SUFFIXES, ".spacy": "spacy"}
PURPOSE_HELP = (
    "Purpose of the labels: train (doubtful sentences to train on), or adapt (whole documents for `adapt` and `expect --gold`, a random "
    "sample stratified by doubt, without the shortest documents)"
)
OUTPUT_HELP = "File for the batch; without --format by its suffix: .json (all results), .jsonl, .csv, or .spacy (with the predicted annotation)"
N_DEFAULT = f"{DEFAULT_N} unless --max-words is given, {N_TO_ADAPT} with --for adapt"
UNIT_DEFAULT = "sentence; document with --for adapt, and for text categories"
TAGS_DEFAULT = "the rarest tags, together 1 % of the fit's tokens"
MAX_HELP = "Choose at most so many words; expected errors, or P(rare tag), then count per word"
PER_DOC_HELP = "Choose at most so many sentences per document"

Unit = Annotated[str | None, option("Unit to label", "-u", words=KINDS, show_default=UNIT_DEFAULT)]
Order = Annotated[str | None, option("Why a text is chosen", words=tuple(LABEL), show_default="least-confident")]
Tags = Annotated[
    list[str] | None,
    option("Tag to look for with --order rare-tag (may be repeated)", "--tag", "-T", show_default=TAGS_DEFAULT),
]


@command(example="./calibrated texts.txt --order margin --max-words 2000 -o batch.jsonl")
def select(
    model: CalibratedModel,
    data: Texts,
    *,
    purpose: Annotated[str, option(PURPOSE_HELP, "--for", words=PURPOSES)] = "train",
    unit: Unit = None,
    order: Order = None,
    top: Annotated[int | None, option("Number of rows", "--top", "--n", "-n", show_default=N_DEFAULT)] = None,
    max_words: Annotated[int | None, option(MAX_HELP)] = None,
    min_words: Annotated[int | None, option(WORDS_HELP, show_default=f"{MIN_WORDS}")] = None,
    tags: Tags = None,
    per_doc: Annotated[int | None, option(PER_DOC_HELP)] = None,
    seed: Annotated[int, option("Seed of random samples (--order random, --for adapt)")] = 0,
    exclude: Annotated[
        list[Path] | None, option("Texts that are labelled already (.jsonl, .spacy, .csv, .txt); may be repeated", "-x")
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
    Choose unlabelled texts to label next: the sentences whose labels are most likely wrong, or that contain rare tags, each with
    the reason; or a stratified random sample of documents, to adapt to a new domain or to estimate the accuracy on it
    (--for adapt).

    RETURNS (dict): "pipe", "attr", "for", "order" ("spread" for documents to adapt to), "unit", "per_word", "tags" that were hunted; "pool" and "batch": "units", "words",
        "expected_errors", "docs", of a linker "entities"; "excluded": units of the pool whose text is labelled already, None where no labelled texts were given; "rows": see `plugins.review.queue.formats.record_of`.
    RAISES CalibError: every fault of the input.
    """
    queue_output = QueueOutput(output, format, raw_cells, silent, SELECT_SUFFIXES)
    batch = Batch(purpose, order, unit, top, max_words, min_words, per_doc, seed, tuple(tags or ()))
    how: dict[str, Any] = {"doc_key": doc_key, "n_process": n_process, "gpu_id": gpu_id, "code": code}
    run = Run(model, data, attr=attr, component=component, columns=columns, force=force, silent=silent, **how)
    nlp = run.begin(queue_output.files(), read=exclude or [])
    pipe = run.pipe(nlp, unit=unit)
    plan = batch.plan(pipe, hunted_tags(pipe, batch), labelled_texts(nlp, exclude) if exclude else None)
    tasks, labels, result = choose(run, nlp, pipe, plan, batch)
    if queue_output.form == "spacy" and output is not None:
        write_docs(run, nlp, pipe, result["rows"], output)
    deliver_queue(queue_output, pipe, result, tasks, labels, lambda: show_batch(result, output))
    return result


@dataclass(frozen=True)
class Batch:
    """What `select` chooses, and how much. tags: Those of --tag. RAISES C056: two options that exclude one another."""

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
                check_option(flag, value is None, "left out with --for adapt, which draws documents at random", value)
            check_option("--unit", self.unit != "sentence", "document with --for adapt", self.unit)
        hunts = self.order == "rare-tag"
        check_option("--tag", not self.tags or hunts, "left out unless --order is rare-tag", ", ".join(self.tags))
        check_option("--per-doc", self.per_doc is None or self.unit != DOCUMENT, "left out with --unit document", self.per_doc)

    @property
    def adapts(self) -> bool:
        """Whether documents are chosen to adapt to."""
        return self.purpose == "adapt"

    def plan(self, pipe: Calibrator, tags: Sequence[str] = (), labelled: Digests | None = None) -> Plan:
        """The queue to make. Documents to adapt to are spread over their expected errors per word.

        tags (Sequence[str]): Those that are hunted. labelled (Digests | None): Keys of texts that are labelled already.
        RAISES C265: sentences are asked for where documents have labels.
        """
        from .queue.choosing import Plan

        order = LABEL[self.order or ("expected-errors" if self.adapts else "least-confident")]
        default_unit = DOCUMENT if self.adapts or pipe.fit_info.row_unit == DOCUMENT else "sentence"
        default_n = N_TO_ADAPT if self.adapts else DEFAULT_N if self.max_words is None else None
        return Plan(
            unit_of(pipe, self.unit or default_unit, whole=True),
            order,
            tags,
            self.seed,
            per_word=order.adds_up and (self.adapts or self.max_words is not None),
            min_words=MIN_WORDS if self.min_words is None else self.min_words,
            n=self.top or default_n,
            max_words=self.max_words,
            per_doc=self.per_doc,
            spread=self.adapts,
            labelled=labelled,
        )


def choose(
    run: Run, nlp: Language, pipe: Calibrator, plan: Plan, batch: Batch
) -> tuple[Sequence[Task], Iterable[str], dict[str, Any]]:
    """The tasks, the labels that have a score, and what `select` returns."""
    from ...pipe.label_names import shown_names
    from .queue.choosing import queue_of
    from .queue.formats import record_of
    from .queue.tasks import tasks_of

    of_links = pipe.source.annotation(pipe.lookup.component()).spans_are_units
    pool: Counter[str] = Counter()
    sums = partial(sums_of, kind=plan.kind, links=of_links)
    queue = queue_of(run.score_blocks(nlp, pipe), plan, lambda corpus: pool.update(sums(corpus)))
    if queue.n_blocks == 1:
        pool.update(sums(queue.corpus))
    check_found(queue, plan, pool["units"])
    tasks = tasks_of(queue, plan.tags, of_links, shown_names(pipe))
    rows = [record_of(task) for task in tasks]
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
            **({"entities": sum(len(row["marks"]) for row in rows)} if of_links else {}),
        },
        "excluded": None if plan.labelled is None else queue.left_out["labelled"],
        "rows": rows,
    }
    return tasks, queue.corpus.tags_met(), result


def hunted_tags(pipe: Calibrator, batch: Batch) -> tuple[str, ...]:
    """The tags to look for; () for other orders. RAISES C090: the pipe has no such tag. C093: none of its tags is rare."""
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


def sums_of(corpus: ScoredCorpus, kind: str, links: bool = False) -> dict[str, Any]:
    """What there is in all. kind (str): What a unit is. links (bool): Whether labels are of entities, as links are, which are counted too."""
    from .queue.units import units_of

    units = units_of(corpus, kind)
    return {
        "units": len(units),
        "words": int(units.counts(corpus.lengths).sum()),
        "expected_errors": float((1 - corpus.calibrated[corpus.counted]).sum()),
        "docs": corpus.n_docs,
        **({"entities": int(corpus.counted.sum())} if links else {}),
    }


def check_found(queue: Queue, plan: Plan, n: int) -> None:
    """n (int): Units of the pool. RAISES C091: nothing can be chosen. C094: every unit has more words than may be chosen."""
    if len(queue.order):
        return
    if queue.possible:
        raise calib_error("C094", unit=plan.kind, max_words=plan.max_words)
    what = f"score for {', '.join(plan.tags)}" if plan.tags else f"scored {queue.corpus.row_unit}"
    wanted = f"{what} and {plan.min_words} words (--min-words)"
    raise calib_error("C091", n=n, unit=plan.kind, excluded=queue.left_out["labelled"], what=wanted)


# What is printed

N_SHOWN, TEXT_WIDTH = 20, 60
MEANS = {
    "least-confident": "how likely its most doubtful label is wrong",
    "expected-errors": "wrong labels to be expected",
    "margin": "how much likelier the best other label is than the one it has (mostly below 0: less likely), as a mean of its words",
    "entropy": "entropy of the labels, as a mean of its words",
    "rare-tag": "how likely it holds such a tag",
    "random": "place in a random order",
    "spread": "wrong labels to be expected",
}


def show_batch(result: dict[str, Any], output: Path | None) -> None:
    """Print the first rows, and what the batch is in all."""
    batch, pool, order, unit = result["batch"], result["pool"], result["order"], result["unit"]
    adapts = result["for"] == "adapt"
    msg.divider(f"{unit.capitalize()}s {'to adapt to, spread over their doubt' if adapts else f'to label, by {order}'}")
    if result["tags"]:
        msg.text(f"Tags hunted: {', '.join(result['tags'])}")
    show_rows(result["rows"][:N_SHOWN], _COLUMNS)
    msg.text(f"Priority: {MEANS[order]}{', divided by the words' if result['per_word'] else ''}.")
    if adapts:
        msg.text(
            f"Sorted by their priority, the documents were cut into {batch['units']:,} equal parts, and one was drawn at random from each (the shortest ones, "
            "a tenth of the words, were left out): they stand for all, as `adapt` and `expect --gold` need it. They are in random order: the first few "
            "stand for all, too. Label them whole."
        )
    if batch["units"] > N_SHOWN:
        msg.text(f"... and {batch['units'] - N_SHOWN:,} more; --output writes them all.")
    of_documents = any(row["reason"]["word"] is None for row in result["rows"])
    for name, part in (("Batch", batch), ("Pool", pool)):
        of_links = "entities" in part
        share = 100 * part["expected_errors"] / max(1, part["entities" if of_links else "units" if of_documents else "words"])
        entities, wrong = (f"{part['entities']:,} entities, ", "links") if of_links else ("", "labels")
        msg.text(
            f"{name}: {part['units']:,} {unit}s of {part['docs']:,} documents, {part['words']:,} words, {entities}"
            f"{part['expected_errors']:,.1f} wrong {wrong} expected ({share:.1f}\u00a0%)."
        )
    if result["excluded"] is not None:
        msg.text(f"{result['excluded']:,} {unit}s of the pool are labelled already.")
    if output is not None:
        msg.good(f"The batch: {output}")


def _because(reason: dict[str, Any]) -> str:
    tags = [(reason["tag"], reason["probability"]), *list(reason["alternatives"].items())[:2]]
    word = "" if reason["word"] is None else f"{shorten(reason['word'], 20)}: "
    return word + " · ".join(f"{tag} {probability:.2f}" for tag, probability in tags)


_COLUMNS = (
    TableColumn("Rank", "rank"),
    TableColumn("Doc", "doc"),
    TableColumn("Sent", "sentence"),
    TableColumn("Priority", "priority", number),
    TableColumn("Words", "words", whole),
    TableColumn("Because of", "reason", _because, "l"),
    TableColumn("Text", "text", lambda text: shorten(text, TEXT_WIDTH), "l"),
)
