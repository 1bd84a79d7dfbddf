"""`spacy calib expect`: estimate the accuracy on texts without gold, and whether the estimate can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...cli.shared.command import check_confidence, check_option, command, option
from ...cli.shared.examples import holds_gold
from ...cli.shared.options import (
    CalibratedModel,
    Code,
    Columns,
    ForceFile,
    Format,
    GpuId,
    NProcess,
    OnlyComponent,
    Silent,
    Texts,
)
from ...cli.shared.outputs import output_files
from ...cli.shared.run import Run
from ...cli.shared.screen import msg
from ...cli.shared.writing import deliver
from ...errors import CalibError, calib_error
from ...pipe.pipeline import check_readable
from .expect_output import ADAPTED, show_result

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator

BY_HELP = "Also estimate each group of documents by this key of Doc.user_data or .jsonl, or by this function of calib_keys"
# Confidence level of the range of bias that a card has.
CARD_CONFIDENCE = 0.95

FailOn = Annotated[
    str | None, option("Exit code 1 if the texts differ from the fit data: drift, unclear (too few texts), or drift,unclear")
]


def failing_verdicts(fail_on: str | None) -> list[str | None]:
    """Return the drift verdicts that --fail-on names; None stands for a pipe without a record. RAISES C056: another name."""
    from ...pipe.record.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW

    verdicts: dict[str, list[str | None]] = {"drift": [DIFFERENT, OTHER_WEIGHTS], "unclear": [TOO_FEW, None]}
    names = [] if fail_on is None else [name.strip() for name in fail_on.split(",")]
    check_option("--fail-on", all(name in verdicts for name in names), "drift, unclear or drift,unclear", repr(fail_on))
    return [verdict for name in names for verdict in verdicts[name]]


def is_failure(fail_on: str | None, result: dict[str, Any]) -> bool:
    """Whether --fail-on names the drift verdict of any pipe. result (dict): The result of `expect`, for one or more pipes."""
    verdicts = [(pipe_result["drift"] or {"verdict": None})["verdict"] for pipe_result in list_results(result)]
    return any(verdict in failing_verdicts(fail_on) for verdict in verdicts)


def list_results(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the results of single pipes that are in the result of `expect`: itself for the first pipe, then the "others"."""
    return [result, *result.get("others", {}).values()]


@command(example="./calibrated texts.jsonl --per-doc")
def expect(
    model: CalibratedModel,
    data: Texts,
    *,
    component: OnlyComponent = None,
    columns: Columns = None,
    confidence: Annotated[float, option("Confidence level of the intervals")] = 0.95,
    by: Annotated[str | None, option(BY_HELP, metavar="KEY")] = None,
    per_doc: Annotated[bool, option("Also estimate the accuracy of each document")] = False,
    check: Annotated[bool, option("Compare with the gold in DATA")] = False,
    fail_on: FailOn = None,
    output: Annotated[Path | None, option("JSON file for the result", "-o")] = None,
    format: Format = "table",
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Estimate the accuracy (and precision, recall and F of entities) on texts without gold, with intervals, and check whether the
    texts are like those that the pipe was fitted on: if they are not, the estimates cannot be trusted.

    RETURNS (dict): "pipe", "component", "layer", "documents" and what they are ("by"), "tokens", "confidence",
        "weights_changed" (whether the component was trained since the fit), "learned_from" ("unit" and "n" of the documents
        that the intervals are learned from, and "kind": a fit, a card or an adaptation), and the entries of
        `summary.estimate_quality`. On request "slices": "by" and "rows" (as from `CorpusSummary.estimate_slices`), "per_doc"
        (as from `make_document_rows`), and "true" (as from `compare_with_gold`) with "checkable", "checked" and "seen" (overlap
        with the fit data, a `pairs.seen_texts.TrainTestOverlap`). If the pipeline has several pipes, these are of the first;
        "others": name of a pipe -> the same; "skipped": why others have no result.
    RAISES C030: there is no gold to check against. SystemExit: --fail-on names the verdict. CalibError: every other fault of
        the input.
    """
    check_confidence(confidence)
    failing_verdicts(fail_on)
    run_options: dict[str, Any] = {"n_process": n_process, "gpu_id": gpu_id}
    run_options |= {"code": code, "force": force, "silent": silent}
    run = Run(model, data, component=component, columns=columns, by=by, **run_options)
    nlp = run.begin(output_files(output))
    pipes = run.pipes(nlp, allow_many=True)
    result = estimate_pipes(nlp, pipes, lambda pipe: estimate_pipe(run, nlp, pipe, confidence, check, per_doc))

    def show_all() -> None:
        for pipe_result in list_results(result):
            show_result(pipe_result)
        for sentence in result.get("skipped", ()):
            msg.warn(sentence)

    deliver(result, show_all, output=output, format=format, silent=silent)
    if is_failure(fail_on, result):
        raise SystemExit(1)
    return result


def estimate_pipes(
    nlp: Language, pipes: Sequence[Calibrator], estimate: Callable[[Calibrator], dict[str, Any]]
) -> dict[str, Any]:
    """Estimate with each pipe, and return the result of `expect`. RAISES CalibError: of the first pipe, if all pipes fail."""
    results: list[dict[str, Any]] = []
    errors: list[CalibError] = []
    warnings: list[str] = []
    for pipe in pipes:
        try:
            check_readable(nlp, pipe)
            results.append(estimate(pipe))
        except CalibError as error:
            errors.append(error)
            warnings.append(f"Nothing is expected by pipe {pipe.name}. {error.message}")
    if not results:
        raise errors[0]
    if len(pipes) == 1:
        return results[0]
    return {**results[0], "others": {other["pipe"]: other for other in results[1:]}, "skipped": warnings}


def estimate_pipe(run: Run, nlp: Language, pipe: Calibrator, confidence: float, check: bool, per_doc: bool) -> dict[str, Any]:
    """Return the result of `expect` for one pipe, from "pipe" on. check, per_doc (bool): Compare with gold; list documents."""
    from ...annotations import get_annotation
    from ...gold.keys import Names
    from ...gold.reading import GoldSpanCounter
    from ...pipe.record.fit_record import read_record
    from .summary import CorpusSummary, compare_with_gold, count_checked, mark_untrusted

    annotation, event = get_annotation(pipe.fit_info.layer), pipe.fit_info.span_event
    record, labels = read_record(pipe), pipe.lookup.labels()
    gold_spans, names, summary = GoldSpanCounter(annotation), Names(run.by), CorpusSummary(labels, record)
    overlap = None
    if check and not holds_gold(run.data):
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    corpora: Iterable[ScoredCorpus]
    if check:
        corpus, overlap = score_gold(run, nlp, pipe, lambda examples: names.watch(gold_spans.watch(examples)))
        corpora = [corpus]
    else:
        corpora = run.score_blocks(nlp, pipe, sentences=False, also=lambda examples: names.watch(gold_spans.watch(examples)))
    for corpus in corpora:
        if per_doc:
            summary.add_documents(corpus, record, confidence, check)
        summary.add(corpus, names.take())
    if check and not corpus.has_gold:
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    same_weights = not pipe.lookup.weights_changed()
    result: dict[str, Any] = {"pipe": pipe.name, "component": pipe.source.component, "layer": annotation.gold.name}
    result |= {
        "documents": summary.n_documents,
        "by": corpus.unit,
        "tokens": summary.sums.tokens,
        "confidence": confidence,
        "weights_changed": not same_weights,
        "learned_from": describe_fit(pipe),
        **summary.estimate(event, confidence),
    }
    # A card has the lowest and the highest bias, mean score minus accuracy; the range of the accuracy follows from them.
    if (bias := pipe.fit_info.card_bias) is not None and not pipe.of_entities and confidence == CARD_CONFIDENCE:
        mean = result["accuracy"]["mean_score"]
        result["accuracy"] |= {"low": max(mean - bias[1], 0.0), "high": min(mean - bias[0], 1.0)}
    result = result if same_weights else mark_untrusted(result)
    if check:
        result |= {"seen": overlap, **count_checked(corpus)}
        result["true"] = compare_with_gold(corpus, gold_spans.n_gold, result)
    if run.by is not None:
        names.check()
        result["slices"] = {"by": run.by, "rows": summary.estimate_slices(event, confidence, same_weights)}
    if per_doc:
        result["per_doc"] = summary.document_rows
    return result


def describe_fit(pipe: Calibrator) -> dict[str, Any]:
    """Return "unit" and "n" (number) of the documents of the last adaptation, else of the fit; "kind": a key of NO_RECORD."""
    info = pipe.fit_info
    last = info.adaptations[-1] if info.adaptations else {"unit": info.unit, "docs": info.docs}
    return {"unit": last["unit"], "n": last["docs"], "kind": ADAPTED if info.adaptations else pipe.learned.origin}


def score_gold(
    run: Run, nlp: Language, pipe: Calibrator, also: Callable[[Iterable[Example]], Iterable[Example]]
) -> tuple[ScoredCorpus, dict[str, Any] | None]:
    """Return (scores of DATA with gold, overlap with the fit data or None). also (Callable): Wraps the iterator of examples.

    RAISES C075, C745: no token got a score. C151: the component knows none of the labels. C800 to C804: wrong gold.
    """
    from ...gold.checks import EXPECTED, GoldWatch
    from ...pipe.gold_checks import check_outcomes_of

    watch = GoldWatch(pipe.annotation)
    corpus, overlap = run.score(nlp, pipe, sentences=False, also=lambda examples: watch.watch(also(examples)))
    check_outcomes_of(pipe, watch, corpus, run.silent, EXPECTED)
    return corpus, overlap
