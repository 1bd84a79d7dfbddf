"""List gold labels that are probably wrong, most likely first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...cli.fitting.new_calib import insert_unfitted
from ...cli.shared.command import argument, command, option
from ...cli.shared.examples import run_pipes, with_progress
from ...cli.shared.gold import report_unknown
from ...cli.shared.options import Code, ForceFile, Gold, GoldPreproc, GpuId, LabelMap, Silent
from ...cli.shared.outputs import output_files
from ...cli.shared.run import GoldRun, Run
from ...cli.shared.screen import TableColumn, msg, number, shorten, show_rows
from ...pipe.pipeline import sentence_finders
from .memory import DOC_BYTES, check_size
from .queues import QueueFile, QueueFormat, QueueOutput, Top, deliver_queue, unit_in_text

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...annotations import Annotation
    from ...pipe.component import Calibrator

N_SHOWN = 20
_LOW_THRESHOLD = 1e-4  # with one label per row, scores down to this threshold rank the gold labels


@command(example="en_core_web_sm test.spacy --format prodigy -o queue.jsonl")
def audit(
    model: Annotated[str, argument("MODEL", "Pipeline with the trained component, calibrated or not")],
    data: Gold,
    *,
    component: Annotated[
        str | None, option("Component whose scores are compared with the gold", "-C", show_default="tagger")
    ] = None,
    label_map: LabelMap = None,
    top: Top = None,
    output: QueueFile = None,
    format: QueueFormat = "table",
    gold_preproc: GoldPreproc = False,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    List gold labels that are probably wrong, most likely first, each with the likelier label, and write them as a queue for an
    annotation tool. Scores are calibrated by cross-validation: no label by one fitted on its own document.

    RETURNS (dict): "component", "unit"; "labels": number of gold labels; "doubted": number of those with a likelier rival;
        "kinds": number of each kind of error; "expected_wrong": estimated number of wrong gold labels; "ranked": a record of
        each doubted label, as `plugins.review.queue.formats.to_record` makes them.
    RAISES C625: the data are one document. C317, C318: there is no such component. CalibError: any other bad input.
    """
    from ...pairs.label_map import read_map
    from ...pipe.scorer import corpus_of
    from .audit import audit_tasks
    from .gold_audit import audit_gold, find_heads
    from .queue.formats import to_record

    queue_output = QueueOutput(output, format, silent)
    run = GoldRun(model, data, gold_preproc=gold_preproc, gpu_id=gpu_id, code=code, force=force, silent=silent)
    table = None if label_map is None else read_map(label_map)
    nlp, calib = insert_unfitted(run.begin(output_files(output)), run.model, component, table, gold_preproc=gold_preproc)
    examples = _score_gold(run, nlp, calib)
    corpus = corpus_of(examples, calib.attr, calib.lookup.labels())
    unit, findings = audit_gold(calib, examples, corpus)
    show_all = top is None and (output is not None or format != "table")
    doubts = findings.doubts if show_all else findings.doubts[: top or N_SHOWN]
    has_arcs = calib.source.annotation(calib.lookup.component()).kind.of_arcs
    tasks = audit_tasks(corpus, doubts, unit, partial(find_heads, corpus=corpus, examples=examples) if has_arcs else None)
    result = {
        "component": calib.source.component,
        "unit": unit,
        "labels": findings.n_labels,
        "doubted": len(findings.doubts),
        "kinds": dict(Counter(doubt.kind for doubt in findings.doubts)),
        "expected_wrong": findings.n_wrong,
        "ranked": [to_record(task) for task in tasks],
    }
    deliver_queue(queue_output, result, tasks, lambda: show_audit(result, top, output))
    return result


def reads_low_scores(annotation: Annotation, span_labels: Sequence[str]) -> bool:
    """Return whether the audit needs scores below the threshold: only if each row has one label, and not for arcs or spans.

    span_labels (Sequence[str]): Labels of the spans that the source scores; empty if it scores tokens only.
    """
    return not (annotation.kind.overlapping or annotation.kind.of_arcs or span_labels)


def _score_gold(run: Run, nlp: Language, calib: Calibrator) -> list[Example]:
    """Return the gold examples; each predicted Doc has the scores of `calib` when it is fitted on other documents.

    The threshold of `calib` is lowered if the audit needs lower scores. RAISES C625: there is only one document.
    """
    from ...pipe.gold_checks import check_has_gold, unknown_in_examples
    from .gold_audit import score_out_of_fold

    examples = list(check_size(run.match([calib], run.read(nlp)), run.data, DOC_BYTES))
    check_has_gold(examples, calib)
    if reads_low_scores(calib.annotation, calib.lookup.span_labels()):
        calib.threshold = min(calib.threshold, _LOW_THRESHOLD)
    order = nlp.pipe_names
    # Pipes after `last` do not run: they could change what the component finds. Doubted labels are shown in their sentences.
    last = max(map(order.index, [calib.name, *sentence_finders(nlp)[:1]]))
    names = [name for name in order[: last + 1] if name != calib.name]
    annotated_examples = list(run_pipes(nlp, examples, names, silent=run.silent, title="Reading scores"))
    score_out_of_fold(calib, annotated_examples, partial(with_progress, silent=run.silent))
    report_unknown(calib, unknown_in_examples(calib, annotated_examples), run.silent)
    return annotated_examples


def show_audit(result: dict[str, Any], top: int | None, output: Path | None) -> None:
    """Print an audit's first `top` doubted labels, the kinds of errors, and the estimated number of wrong labels."""
    plural = "entities" if result["unit"] == "entity" else "labels"
    msg.divider(f"{result['doubted']:,} of {result['labels']:,} gold {plural} are doubtful, most likely wrong first")
    rows = result["ranked"][: top or N_SHOWN]
    show_rows(rows, _COLUMNS)
    if output is not None and len(result["ranked"]) > len(rows):
        msg.text(f"... and {len(result['ranked']) - len(rows):,} more in {output}")
    if result["kinds"]:
        msg.text(", ".join(f"{kind}: {n:,}" for kind, n in sorted(result["kinds"].items(), key=lambda item: -item[1])))
    if result["expected_wrong"] is not None:
        estimate = f"At most about {result['expected_wrong']:,.0f} of {result['labels']:,} gold {plural} are wrong"
        msg.text(f"{estimate}, estimated from the most confident predictions.")
    msg.text("A component that was trained on these texts agrees with their errors.")
    if output is not None:
        msg.good(f"{len(result['ranked']):,} gold {plural}: {output}")


def _with_head(label: str | None, head: str | None) -> str:
    """Return "LABEL < HEAD" for an arc, else the label, "-" for none."""
    return f"{label or '-'} < {head}" if head else label or "-"


def _format_rival(record: dict[str, Any]) -> str:
    """Return the label that is likelier than the gold: with its text if that is another span, and with the head of an arc."""
    label, text = record["suggestion"], record.get("suggested_text")
    return _with_head(f"{label}: {text}" if text else label, record.get("suggested_head"))


_COLUMNS = (
    TableColumn("#", "rank"),
    TableColumn("Kind", "kind", str, "l"),
    TableColumn("Unit", "focus", lambda text: shorten(text, 24), "l"),
    TableColumn("Gold", "", lambda row: _with_head(row["gold"], row.get("head")), "l"),
    TableColumn("P(gold)", "score", lambda score: "<0.001" if score < 0.001 else number(score, 3)),
    TableColumn("Rather", "", _format_rival, "l"),
    TableColumn("P(that)", "suggestion_score", lambda score: number(score, 3)),
    TableColumn("In", "", unit_in_text, "l"),
)
