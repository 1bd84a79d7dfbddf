"""List predictions to check, the most likely wrong first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from ...calibration.promise import SIZES, answers_to_check, expect_promise
from ...cli.shared.command import check_option, command, option
from ...cli.shared.options import CalibratedModel, ChosenComponent, Code, Columns, ForceFile, GpuId, NProcess, Silent, Texts
from ...cli.shared.outputs import output_files
from ...cli.shared.run import Run, unit_of
from ...cli.shared.screen import TableColumn, in_percent, msg, number, print_table, shorten, show_rows, show_seen
from ...pairs.documents import DOCUMENT, TOKEN, count_in_words
from .asking import ask_in_terminal
from .memory import SCORE_BYTES, TASK_BYTES, check_size
from .messages import calib_error
from .queue.choosing import QueuePlan, queue_of
from .queue.orders import ORDERS
from .queues import (
    MIN_WORDS,
    RANK_SUFFIXES,
    QueueFile,
    QueueFormat,
    QueueOutput,
    Top,
    Unit,
    deliver_queue,
    labelled_texts,
    rerun_and_write_docs,
    unit_in_text,
)

if TYPE_CHECKING:
    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator
    from .queue.choosing import Queue
    from .queue.tasks import Task

N_SHOWN = 20
DEFAULT_ORDER = "calibrated"
STRATIFIED = "stratified"  # what --to-adapt samples by
_WIDTH = 70  # of a sentence or document in a printed table
ORDER_HELP = (
    "What units are ordered by; only calibrated, the probability of being right, also predicts how many errors there are"
)
ADAPT_HELP = "A random sample of whole documents, stratified by doubt, for `adapt`"
PER_DOC_HELP = "Maximum number of units of one document; documents take turns"
EXCLUDE_HELP = "File of texts that are labelled already (.jsonl, .spacy, .csv, .txt); may be repeated"
N_TO_ADAPT = 10  # documents to adapt to
NOT_ACCEPTED_HELP = "Only entities below their cut-off (`calib threshold --apply`)"
ACCEPTED_HELP = "Only entities that reach their cut-off, the most certain first; as .csv a table of names"
ASK_HELP = "Ask in the terminal whether each entity is right, and save the answers to --output (.jsonl), to go on later"
N_TO_ASK, PRECISIONS = 250, (0.7, 0.8, 0.9, 0.95)  # questions without --top; the precisions shown before the first one


@command(example="./calibrated test.spacy --unit sentence --format prodigy -o queue.jsonl")
def rank(
    model: CalibratedModel,
    data: Texts,
    *,
    order: Annotated[str, option(ORDER_HELP, words=ORDERS)] = DEFAULT_ORDER,
    repeats: Annotated[bool, option("Keep repeats: units whose sentence occurs again")] = False,
    not_accepted: Annotated[bool, option(NOT_ACCEPTED_HELP)] = False,
    accepted: Annotated[bool, option(ACCEPTED_HELP)] = False,
    ask: Annotated[bool, option(ASK_HELP)] = False,
    to_adapt: Annotated[bool, option(ADAPT_HELP)] = False,
    exclude: Annotated[list[Path] | None, option(EXCLUDE_HELP, "-x")] = None,
    per_doc: Annotated[int | None, option(PER_DOC_HELP)] = None,
    seed: Annotated[int, option("Seed of random samples (--order random, --to-adapt)")] = 0,
    unit: Unit = None,
    top: Top = None,
    output: QueueFile = None,
    format: QueueFormat = "table",
    component: ChosenComponent = None,
    columns: Columns = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """Rank tokens, sentences, entities or documents, most likely wrong first, and write them as a queue for an annotation tool.
    With gold, report how soon the order finds the errors.

    RETURNS (dict): "pipe", "unit", "order" ("stratified" with --to-adapt); the keys of
        `plugins.review.queue.findings.summarize_order`, of the units that are not left out; "wrong_range": lowest and highest
        number of wrong ones by the range of bias of a pretrained calibration, else None; "seen": overlap with the fit data,
        `pairs.seen_texts.TrainTestOverlap`; "accepted", "below", "too_short", "excluded" and "repeats": numbers of units left
        out; "ranked": a record of each unit of the queue, as `plugins.review.queue.formats.to_record` makes them; for a random
        sample of entities "sample", as `describe_sample` returns it; with --ask the number of questions "answered".
    RAISES CalibError: any bad input.
    """
    # Accepted entities are ready for use: as .csv they are written in the form "names", a table of names for spreadsheets. In
    # random order they are a sample whose answers show the precision, so that .csv has the columns of other queues.
    suffixes = {**RANK_SUFFIXES, ".csv": "names"} if accepted and order != "random" else RANK_SUFFIXES
    queue_output = QueueOutput(output, format, silent, suffixes)  # checks the suffix and the format
    entity_options = {"--not-accepted": not_accepted, "--accepted": accepted, "--ask": ask}
    entity_flags = [flag for flag, is_given in entity_options.items() if is_given]  # given options that are about entities
    _check_combination(unit, order, queue_output, entity_flags, to_adapt)
    if to_adapt or entity_flags:  # these options allow only one unit
        unit = DOCUMENT if to_adapt else "entity"
    runtime: dict[str, Any] = {"n_process": n_process, "gpu_id": gpu_id, "code": code}
    # --ask goes on with a file of answers, so that it may exist without --force.
    run = Run(model, data, component=component, columns=columns, force=force or ask, silent=silent, **runtime)
    nlp = run.begin(output_files(output), read=exclude or [])
    pipe = run.pipe(nlp, unit=unit, flag=entity_flags[0] if entity_flags else "--unit")
    kind = unit_of(pipe, unit)
    _check_pipe(pipe, kind, queue_output, entity_flags)
    # With these options entities have different probabilities to be sampled, so the answers show no precision.
    has_equal_probabilities = not (not_accepted or exclude or per_doc)
    plan = QueuePlan(
        kind,
        order,
        min_words=MIN_WORDS if kind == "sentence" else 0,
        accepted=True if accepted else False if not_accepted else None,  # None: entities on both sides of their cut-offs
        repeats=repeats,
        n=top or _default_number(to_adapt, ask, is_on_screen=output is None and format == "table"),
        per_doc=per_doc,
        seed=seed,
        is_stratified=to_adapt,
        labelled=labelled_texts(nlp, exclude) if exclude else None,
        is_sample=kind == "entity" and order == "random" and has_equal_probabilities and pipe.spans.groups is not None,
    )
    # Tasks need memory worth counting only if each token gets one, not if their number is limited or the units are longer.
    bytes_per_token = SCORE_BYTES + (TASK_BYTES if plan.n is None and kind == TOKEN else 0)
    check_memory = partial(check_size, path=run.data, bytes_per_token=bytes_per_token)
    corpus, overlap = run.score(nlp, pipe, "Ranking", check_memory)
    tasks, result = rank_units(pipe, corpus, plan)
    result["seen"] = overlap
    if ask and output is not None:
        _ask_questions(tasks, result, output, anew=force, silent=silent)
        return result
    if queue_output.queue_format == "spacy" and output is not None:
        rerun_and_write_docs(run, nlp, pipe, result["ranked"], output)
    deliver_queue(queue_output, result, tasks, lambda: show_ranking(result, top, output, accepted))
    return result


def _default_number(to_adapt: bool, ask: bool, is_on_screen: bool) -> int | None:
    """Return the number of units to choose without --top, by what the queue is for; None for all."""
    return N_TO_ADAPT if to_adapt else N_TO_ASK if ask else N_SHOWN if is_on_screen else None


def _ask_questions(tasks: Sequence[Task], result: dict[str, Any], output: Path, anew: bool, silent: bool) -> None:
    """Ask about each task, save the answers to `output`, and put their number into the result. If `anew`, replace this file."""
    if not silent:
        show_sample(result)
    result["answered"] = ask_in_terminal(tasks, output, anew)
    msg.good(f"{result['answered']:,} of {len(tasks):,} questions are answered: {output}")


def _check_combination(unit: str | None, order: str, queue: QueueOutput, flags: list[str], to_adapt: bool) -> None:
    """Check that options of `rank` can be combined. flags: The set options that need entities. RAISES C056: they cannot."""
    # The last argument is the rejected value in the message; it is "it" for a flag: "... must be left out, but it was given".
    if to_adapt:
        check_option("--unit", unit in (None, DOCUMENT), "document with --to-adapt", unit)
        check_option("--not-accepted", "--not-accepted" not in flags, "left out with --to-adapt", "it")
        check_option("--order", order == DEFAULT_ORDER, "left out with --to-adapt, which samples documents at random", order)
        unit = DOCUMENT
    for flag in flags:
        check_option(flag, unit in (None, "entity"), f"left out with --unit {unit}", "it")
    check_option("--accepted", not {"--accepted", "--not-accepted"} <= set(flags), "left out with --not-accepted", "it")
    if "--ask" in flags:
        is_answer_file = queue.output is not None and queue.output.suffix == ".jsonl" and queue.format == "table"
        check_option("--output", is_answer_file, "a .jsonl file for the answers with --ask, without --format", queue.output)


def _check_pipe(pipe: Calibrator, kind: str, queue: QueueOutput, flags: list[str]) -> None:
    """Check that the pipe and the unit to rank fit the options of `rank`.

    kind (str): The unit, such as "entity". queue (QueueOutput): The file and its format. flags (list[str]): Set options that
    need entities. RAISES C056: a .spacy file for units other than documents. C531: an option needs cut-offs; the pipe has none.
    """
    expected = f"a file that ends in .jsonl for the unit {kind} (.spacy holds whole documents)"
    check_option("--output", queue.queue_format != "spacy" or kind == DOCUMENT, expected, queue.output)
    needs_cutoffs = "--accepted" in flags or "--not-accepted" in flags
    if needs_cutoffs and (pipe.spans.cutoffs or pipe.tokens.label_cutoffs) is None:
        raise calib_error("C531", name=pipe.name)


def rank_units(pipe: Calibrator, corpus: ScoredCorpus, plan: QueuePlan) -> tuple[Sequence[Task], dict[str, Any]]:
    """Choose units to review by a plan. RETURNS (tuple): A task per unit, in order; the result, which `rank` completes."""
    from ...pipe.label_names import shown_names
    from .queue.findings import summarize_order
    from .queue.formats import to_record
    from .queue.tasks import tasks_of

    annotation, queue = pipe.source.annotation(pipe.lookup.component()), queue_of(corpus, plan)
    tasks = tasks_of(queue, asks_each_span=annotation.kind.of_links, gold_names=shown_names(pipe))
    result = {
        "pipe": pipe.name,
        "unit": plan.kind,
        "order": STRATIFIED if plan.is_stratified else plan.order,
        **summarize_order(corpus, queue.units.take(queue.candidates), plan.order, plan.seed),
        "wrong_range": None,
        "seen": None,  # the overlap with the fit data, which `rank` puts in
        **queue.left_out,
        "ranked": [to_record(task) for task in tasks],
    }
    if plan.is_sample:
        result["sample"], questions = describe_sample(pipe, queue, plan)
        tasks = [replace(task, sample=question) for task, question in zip(tasks, questions, strict=True)]
    if (bias := pipe.fit_info.card_bias) is not None:
        # The bias that the card of a pretrained calibration gives, as (lowest, highest) of mean score - share of right ones, is
        # that of all entities, or of tokens if there are none. It says nothing about other units, or a selection by cut-offs.
        unit_of_card = "entity" if pipe.lookup.span_labels() else TOKEN
        is_known = plan.kind == unit_of_card and not (result["accepted"] or result["below"])
        n, wrong = result["units"], result["expected_wrong"]
        result["wrong_range"] = [min(max(wrong + n * bound, 0.0), n) for bound in bias] if is_known else None
        result["expected_wrong"] = wrong if is_known else None
    return tasks, result


def describe_sample(pipe: Calibrator, queue: Queue, plan: QueuePlan) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Estimate how many answers about a random sample of entities give or confirm a cut-off; list data to save with each.

    The sample is `queue.order`. It is drawn from the candidates: all entities, or all entities that reach their cut-offs.
    RETURNS (tuple): A dict about the sample, and a dict for each sampled entity. The first has "documents" (number of documents
        with candidates) and "precision" (mean score of the candidates; None without any). It also has "promises" (for each of
        PRECISIONS the number of answers that probably give a cut-off with this precision, as a dict of `expect_promise`) or, if
        the candidates reach their cut-offs, "wanted" (precision of the cut-offs) and "needed" (number of answers that probably
        confirm it; None: too many). An entity has "calib" (identity of the calibration), "drawn_from" (number of documents),
        "accepted" (share of all entities that are candidates), "label", "score", "document" and "cutoff" (None: any score).
    """
    spans, cutoffs, groups = queue.corpus.spans, pipe.spans.cutoffs, pipe.spans.groups
    documents, scores = queue.corpus.documents_of(spans.docs), spans.calibrated[queue.candidates]
    n_documents = len(np.unique(documents[queue.candidates]))
    mean_score = float(scores.sum()) / len(scores) if len(scores) else None
    sample: dict[str, Any] = {"documents": n_documents, "precision": mean_score}
    labels = [queue.corpus.names[label] for label in spans.labels[queue.order].tolist()]  # of the sampled entities
    label_cutoffs: list[float | None] = [None] * len(labels)
    if plan.accepted and cutoffs and groups:
        all_labels = pipe.lookup.span_labels()
        columns = np.array([all_labels.index(label) for label in labels], dtype=np.intp)
        label_cutoffs = cutoffs.get_cutoffs(columns, all_labels, groups).tolist()
        sample |= {"wanted": cutoffs.precision, "needed": answers_to_check(mean_score or 0.0, cutoffs.precision)}
    else:
        sample["promises"] = [expect_promise(scores, precision, plan.seed) for precision in PRECISIONS]
    shared = {"calib": pipe.learned.identity, "drawn_from": n_documents, "accepted": len(scores) / max(1, len(spans))}
    fields = ("label", "score", "document", "cutoff")
    entities = zip(labels, spans.calibrated[queue.order].tolist(), documents[queue.order].tolist(), label_cutoffs, strict=True)
    return sample, [shared | dict(zip(fields, entity, strict=True)) for entity in entities]


def show_sample(result: dict[str, Any]) -> None:
    """Print how many answers about a random sample probably give or confirm a cut-off; nothing without entities to sample."""
    sample = result.get("sample") or {"precision": None}
    if sample["precision"] is None:
        return
    where = f"{count_in_words('entity', result['units'])} in {count_in_words('document', sample['documents'])}"
    msg.text(f"By their scores {in_percent(sample['precision'])} % of {where} are right; if the scores are calibrated:")
    if "wanted" in sample:  # a sample of entities above their cut-offs: to confirm the precision that these promise
        n = f"{sample['needed']:,}" if sample["needed"] else f"more than {SIZES[-1]:,}"
        msg.text(f"Probably {n} answers show that at least {100 * sample['wanted']:g} % are right, as promised.")
    for row in sample.get("promises", ()):  # a sample of all entities: to find a cut-off with each of several precisions
        max_answers = min(SIZES[-1], result["units"])
        reach = f"out of reach with {max_answers:,} answers"
        if row["answers"] is not None and row["answers"] <= max_answers:
            reach = f"promised by probably {row['answers']:,} answers, for {in_percent(row['accepted'])} % of the entities"
        msg.text(f"At least {100 * row['precision']:g} % right: {reach}.")


def show_ranking(result: dict[str, Any], top: int | None, output: Path | None, accepted: bool) -> None:
    """Print the first units of the queue, what was left out, how soon the order finds errors, and the number of errors.

    result (dict): From `rank_units`. top (int | None): Number of units to print; None: 20. output (Path | None): File with all.
    accepted (bool): Whether --accepted was given, so that the most certain come first.
    """
    show_seen(result["seen"])
    n_shown, n = top or N_SHOWN, len(result["ranked"])
    all_units = count_in_words(result["unit"], result["units"])
    is_stratified = result["order"] == STRATIFIED
    if is_stratified:
        msg.divider(f"{n:,} of {all_units}, sampled for `adapt`")
    elif result["order"] == "random":
        msg.divider(f"{all_units}, in random order")
    else:
        first = "certain" if accepted else "doubtful"
        msg.divider(f"{all_units}, most {first} first (by {result['order']})")
    show_rows(result["ranked"][:n_shown], _choose_columns(result["unit"], bool(result["known"])))
    if output is not None and n > n_shown:
        msg.text(f"... and {n - n_shown:,} more in {output}")
    for key, why in _LEFT_OUT.items():
        if result[key]:
            msg.text(f"Left out: {result[key]:,} {why}")
    if not (is_stratified or accepted):  # these do not put the doubtful ones first
        _show_orders(result)
    show_sample(result)
    if sentence := _describe_errors(result):
        msg.text(sentence)
    if output is not None:
        msg.good(f"{count_in_words(result['unit'], n)}: {output}")


def _describe_errors(result: dict[str, Any]) -> str:
    """Return a sentence on how many units of a result are wrong, by their scores and by the gold; "" if neither is known."""
    # For instance: "By their scores about 4 of these 90 are wrong; by the gold 5 of the 80 that have gold are."
    of_these, by_gold = f"of these {result['units']:,} are wrong", ""
    if result["wrong"] is not None:
        subset = "" if result["known"] == result["units"] else f" of the {result['known']:,} that have gold"
        by_gold = f"by the gold {result['wrong']:,}{subset} are"
    if result["wrong_range"] is not None:
        low, high = result["wrong_range"]
        by_scores = f"By their scores and the card's range of bias {low:,.0f} to {high:,.0f} {of_these}"
    elif result["expected_wrong"] is not None:
        by_scores = f"By their scores about {result['expected_wrong']:,.0f} {of_these}"
    else:
        return f"{by_gold.capitalize()} wrong." if by_gold else ""
    return f"{by_scores}; {by_gold}." if by_gold else f"{by_scores}."


def _show_orders(result: dict[str, Any]) -> None:
    """Print the share of all errors among the first 1 %, 2 %, 5 % etc. of the units, by the scores and, with gold, in truth."""
    is_default = result["order"] == DEFAULT_ORDER  # "expected" is always of this order: only it predicts errors
    rows = [("expected" if is_default else f"expected by {DEFAULT_ORDER}", "-", *map(in_percent, result["expected"]))]
    if result["found"] is not None:
        rows.append((result["order"], number(result["average_precision"]), *map(in_percent, result["found"])))
    header = ("% of errors in the first", "Avg. precision", *(f"{100 * part:g} %" for part in result["shares"]))
    print_table(rows, header, ("l", *"r" * (len(header) - 1)))


_LEFT_OUT = {
    "accepted": "accepted (--not-accepted)",
    "below": "below their cut-off (--accepted)",
    "too_short": f"of fewer than {MIN_WORDS} words",
    "repeats": "repeats (--repeats keeps them)",
    "excluded": "labelled already (--exclude)",
}


def _choose_columns(unit: str, has_gold: bool) -> list[TableColumn]:
    """Return the printed table's columns: no label and context for sentences and documents, no gold if `has_gold` is false."""
    whole = unit in ("sentence", DOCUMENT)
    text_key, width = ("text", _WIDTH) if whole else ("focus", 24)
    columns = {
        "#": TableColumn("#", "rank"),
        "P(right)": TableColumn("P(right)", "score", lambda score: "<0.001" if score < 0.001 else number(score, 3)),
        "Unit": TableColumn(unit.capitalize(), text_key, lambda text: shorten(text, width), "l"),
        "Label": TableColumn("Label", "marks", lambda marks: ", ".join(mark["label"] for mark in marks), "l"),
        "Right": TableColumn("Right", "", _format_gold, "l"),
        "In": TableColumn("In", "", unit_in_text, "l"),
    }
    left_out = (("Label", "In") if whole else ()) + (() if has_gold else ("Right",))
    return [column for title, column in columns.items() if title not in left_out]


def _format_gold(record: dict[str, Any]) -> str:
    """Return whether a record's label is right: "yes", "no" (with the gold label if known), or "" without gold."""
    right, gold = record["right"], record["gold"]
    return {None: "", True: "yes", False: f"no, {gold}" if gold else "no"}[right]
