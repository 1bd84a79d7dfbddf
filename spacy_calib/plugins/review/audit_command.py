"""List gold labels that are probably wrong, most likely first.

`spacy calib audit`: gold that is probably wrong, the likeliest first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from ...cli.evaluating.raw_scores import only_component
from ...cli.fitting.new_calib import insert_calib, merge_block, old_block
from ...cli.shared.command import argument, command, option
from ...cli.shared.evidence import check_gold_of_examples, check_has_gold
from ...cli.shared.examples import run_pipes, with_progress
from ...cli.shared.options import Code, DocKey, ForceFile, Gold, GoldPreproc, GpuId, LabelMap, RawCells, Silent
from ...cli.shared.outputs import Output
from ...cli.shared.run import GoldRun, Run, pipes_to_run
from ...cli.shared.screen import TableColumn, msg, number, shorten, show_rows
from .queues import QueueFile, QueueFormat, QueueOutput, Top, deliver_queue

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...annotations import Annotation
    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator
    from .audit import Audit

SHOWN = 20
# Prefix of the pipe where there are others; it is never saved.
_ATTR = "audited"
# Of labels of which a token, or a document, has one, scores down to here tell what gold is less likely than other gold.
_LOWEST = 1e-4


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
    raw_cells: RawCells = False,
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    List gold labels that are probably wrong, most likely first, each with the label that is more likely, and write them as a queue
    for an annotation tool. Scores are calibrated on the gold itself, by cross-validation over its documents.

    RETURNS (dict): "component", "unit"; "labels": gold labels looked at; "doubted": those of which something else is likelier, "kinds": how many of each kind;
        "expected_wrong": see `plugins.review.audit.expected_wrong`; "ranked": the doubted ones, see `plugins.review.queue.formats.record_of`.
    RAISES C625: the data are of one document. C317, C318: there is no such component. CalibError: every fault of the input.
    """
    from .audit import audit_tasks
    from .gold_audit import heads_of
    from .queue.formats import record_of
    from .stored import MadeOnDemand

    queue_output = QueueOutput(output, format, raw_cells, silent)
    run = GoldRun(model, data, gold_preproc=gold_preproc, doc_key=doc_key, gpu_id=gpu_id, code=code, force=force, silent=silent)
    calib, examples, corpus, unit, findings = audited(run, component, label_map, queue_output.files())
    show_all = top is None and (output is not None or format != "table")
    doubts = findings.doubts if show_all else findings.doubts[: top or SHOWN]
    annotation = calib.source.annotation(calib.lookup.component())
    tasks = audit_tasks(
        corpus, doubts, unit, partial(heads_of, corpus=corpus, examples=examples) if annotation.arcs else lambda doubt: {}
    )
    result = {
        "component": calib.source.component,
        "unit": unit,
        "labels": findings.labels,
        "doubted": len(findings.doubts),
        "kinds": dict(Counter(doubt.kind for doubt in findings.doubts)),
        "expected_wrong": findings.expected,
        "ranked": MadeOnDemand(len(tasks), lambda place: record_of(tasks[place])),
    }
    tags = dict.fromkeys([*corpus.tags_met(), *(doubt.gold for doubt in doubts if doubt.gold)])
    deliver_queue(queue_output, calib, result, tasks, tags, lambda: show_audit(result, top, output))
    return result


class Audited(NamedTuple):
    """calib (Calibrator): The pipe that was fitted last. unit (str), findings (Audit): See `audit_gold`."""

    calib: Calibrator
    examples: list[Example]
    corpus: ScoredCorpus
    unit: str
    findings: Audit


def audited(run: Run, component: str | None = None, label_map: str | None = None, outputs: Sequence[Output] = ()) -> Audited:
    """Audit the gold. outputs (Sequence[Output]): Files that will be written. RAISES: see `audit`."""
    from ...pipe.scorer import corpus_of
    from .gold_audit import audit_gold

    nlp, calib = _place_pipe(run, run.begin(outputs), component, label_map)
    examples = _score_gold(run, nlp, calib)
    corpus = corpus_of(examples, calib.attr, calib.lookup.labels())
    return Audited(calib, examples, corpus, *audit_gold(calib, examples, corpus))


def _place_pipe(run: Run, nlp: Language, component: str | None, label_map: str | None) -> tuple[Language, Calibrator]:
    """Return the pipeline with an unfitted pipe that has the settings of its own one. RAISES C317, C318: no such component."""
    from ...pairs.label_map import read_map
    from ...pipe.component import Calibrator

    calib_pipes = [pipe for _, pipe in nlp.components if isinstance(pipe, Calibrator)]
    block = old_block(nlp, None, component)
    options: dict[str, Any] = {}
    if block is None:
        options = {"component": component or only_component(nlp), **({"attr": _ATTR} if calib_pipes else {})}
    table = None if label_map is None else read_map(label_map)
    return insert_calib(nlp, run.model, merge_block(nlp, block, options), table, gold_preproc=run.gold_preproc)


def looks_lower(annotation: Annotation, span_labels: Sequence[str]) -> bool:
    """Return whether scores below the threshold are used: if one label of several is right, and labels alone decide."""
    return not (annotation.overlapping or annotation.judges or annotation.any_label or span_labels)


def _score_gold(run: Run, nlp: Language, calib: Calibrator) -> list[Example]:
    """Return the gold with cross-validated scores. RAISES C625, and see `Calibrator.fit`."""
    from .cross_scoring import score_held_out

    examples = run.match([calib], run.read(nlp))
    check_has_gold(examples, calib)
    if looks_lower(calib.source.annotation(calib.lookup.component()), calib.lookup.span_labels()):
        calib.threshold = min(calib.threshold, _LOWEST)
    names = [name for name in pipes_to_run(nlp, calib, sentences=True) if name != calib.name]
    annotated_examples = list(run_pipes(nlp, examples, names, silent=run.silent, title="Reading scores"))
    score_held_out(calib, annotated_examples, partial(with_progress, silent=run.silent))
    check_gold_of_examples(calib, annotated_examples, run.silent)
    return annotated_examples


# What is printed


def show_audit(result: dict[str, Any], top: int | None, output: Path | None) -> None:
    """Print the first doubted labels, and how many gold labels may be wrong."""
    kind = "entities" if result["unit"] == "entity" else "labels"
    msg.divider(f"{result['doubted']:,} of {result['labels']:,} gold {kind} doubted, most surely wrong first")
    rows = result["ranked"][: top or SHOWN]
    show_rows(rows, _COLUMNS)
    if output is not None and len(result["ranked"]) > len(rows):
        msg.text(f"... and {len(result['ranked']) - len(rows):,} more in {output}")
    if result["kinds"]:
        msg.text(", ".join(f"{kind}: {n:,}" for kind, n in sorted(result["kinds"].items(), key=lambda item: -item[1])))
    if result["expected_wrong"] is not None:
        msg.text(
            f"At most about {result['expected_wrong']:,.0f} of {result['labels']:,} gold {kind} are wrong, by what the surest predictions tell."
        )
    msg.text("A component that was trained on these texts agrees with their errors.")
    if output is not None:
        msg.good(f"{len(result['ranked']):,} gold {kind}: {output}")


def _with_head(label: str | None, head: str | None) -> str:
    return f"{label or '-'} < {head}" if head else label or "-"


_COLUMNS = (
    TableColumn("#", "rank"),
    TableColumn("Kind", "kind", str, "l"),
    TableColumn("Unit", "focus", lambda text: shorten(text, 24), "l"),
    TableColumn("Gold", "", lambda row: _with_head(row["gold"], row.get("head")), "l"),
    TableColumn("P(gold)", "score", lambda score: "<0.001" if score < 0.001 else number(score, 3)),
    TableColumn(
        "Rather",
        "",
        lambda row: _with_head(
            row.get("suggested_text") and f"{row['suggestion']}: {row['suggested_text']}" or row["suggestion"],
            row.get("suggested_head"),
        ),
        "l",
    ),
    TableColumn("P(that)", "suggestion_score", lambda score: number(score, 3)),
    TableColumn("In", "text", lambda text: shorten(text, 60), "l"),
)
