"""`spacy calib expect`: estimate the accuracy on texts without gold, and whether the estimate can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...cli.shared.command import check_confidence, check_option, command, option
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
from ...cli.shared.run import Run, score_blocks
from ...cli.shared.screen import msg
from ...cli.shared.writing import print_result, write_json
from ...errors import CalibError
from ...pipe.pipeline import check_readable
from .expect_output import ADAPTED, show_result

if TYPE_CHECKING:
    from spacy.language import Language

    from ...pipe.component import Calibrator

BY_HELP = "Also estimate each group of documents by this key of Doc.user_data or .jsonl, or by this function of calib_keys"
CARD_CONFIDENCE = 0.95  # confidence level of the range of bias that a card has

FailOn = Annotated[
    str | None, option("Exit code 1 if the texts differ from the fit data: drift, unclear (too few texts), or drift,unclear")
]


def failing_verdicts(fail_on: str | None) -> list[str | None]:
    """Return the verdicts of the comparison with the fit data that --fail-on names; [] without this option.

    fail_on (str | None): Value of the option: drift, unclear or drift,unclear. RETURNS (list): Verdicts; None is that of a pipe
    that holds no record of its fit data. RAISES C056: another name.
    """
    from ...pipe.record.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW

    verdicts: dict[str, list[str | None]] = {"drift": [DIFFERENT, OTHER_WEIGHTS], "unclear": [TOO_FEW, None]}
    names = [] if fail_on is None else [name.strip() for name in fail_on.split(",")]
    check_option("--fail-on", all(name in verdicts for name in names), "drift, unclear or drift,unclear", repr(fail_on))
    return [verdict for name in names for verdict in verdicts[name]]


def is_failure(fail_on: str | None, result: dict[str, Any]) -> bool:
    """Return whether --fail-on (its value) names the drift verdict of any pipe. result: What `expect` returns."""
    verdicts = [(pipe_result["drift"] or {"verdict": None})["verdict"] for pipe_result in list_results(result)]
    return any(verdict in failing_verdicts(fail_on) for verdict in verdicts)


def list_results(result: dict[str, Any]) -> list[dict[str, Any]]:
    """List the result of each pipe: the result of `expect`, which is that of the first pipe, then its "others"."""
    return [result, *result.get("others", {}).values()]


@command(example="./calibrated texts.jsonl --by month")
def expect(
    model: CalibratedModel,
    data: Texts,
    *,
    component: OnlyComponent = None,
    columns: Columns = None,
    confidence: Annotated[float, option("Confidence level of the intervals")] = 0.95,
    by: Annotated[str | None, option(BY_HELP, metavar="KEY")] = None,
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

    RETURNS (dict): "pipe", "component", "layer", "confidence"; numbers of "documents" and "tokens"; "by": a document's unit;
        "weights_changed": whether the component was trained since the fit; "learned_from": "unit" and number "n" of the
        documents that the intervals are learned from, and "kind" ("fitted", "pretrained", "adapted"); "accuracy", "entities",
        "drift" and "trusted" of `summary.estimate_quality`; with --by "slices": the "by", and "rows" with these estimates for
        each "slice". With several pipes, this is of the first; "others": name of a pipe -> the same; "skipped": sentences on
        why a pipe has no result.
    RAISES SystemExit: --fail-on names the verdict. CalibError: any error in the input.
    """
    check_confidence(confidence)
    failing_verdicts(fail_on)  # called only for its error: a wrong --fail-on is reported before anything is loaded
    run_options: dict[str, Any] = {"n_process": n_process, "gpu_id": gpu_id}
    run_options |= {"code": code, "force": force, "silent": silent}
    run = Run(model, data, component=component, columns=columns, by=by, **run_options)
    nlp = run.begin(output_files(output))
    pipes = run.pipes(nlp, allow_many=True)
    result = estimate_pipes(run, nlp, pipes, confidence)

    def show_all() -> None:
        for pipe_result in list_results(result):
            show_result(pipe_result)
        for sentence in result.get("skipped", ()):
            msg.warn(sentence)

    if output is not None:
        write_json(output, result)
    print_result(result, show_all, format, silent)
    if is_failure(fail_on, result):
        raise SystemExit(1)
    return result


def estimate_pipes(run: Run, nlp: Language, pipes: Sequence[Calibrator], confidence: float) -> dict[str, Any]:
    """Return the result of `expect` for several pipes. confidence: Of the intervals. RAISES CalibError: all pipes fail."""
    results: list[dict[str, Any]] = []
    errors: list[CalibError] = []
    warnings: list[str] = []
    for pipe in pipes:
        try:
            check_readable(nlp, pipe)
            results.append(estimate_pipe(run, nlp, pipe, confidence))
        except CalibError as error:
            errors.append(error)
            warnings.append(f"Nothing is expected by pipe {pipe.name}. {error.message}")
    if not results:
        raise errors[0]
    if len(pipes) == 1:
        return results[0]
    return {**results[0], "others": {other["pipe"]: other for other in results[1:]}, "skipped": warnings}


def estimate_pipe(run: Run, nlp: Language, pipe: Calibrator, confidence: float) -> dict[str, Any]:
    """Score the texts with one pipe, and return the result of `expect` for it. confidence: Of the intervals."""
    from ...annotations import get_annotation
    from ...gold.keys import Names
    from ...pipe.record.fit_record import read_record
    from .summary import CorpusSummary

    has_changed, names = pipe.lookup.weights_changed(), Names(run.by)
    summary = CorpusSummary(pipe.lookup.labels(), read_record(pipe), pipe.fit_info.span_event, confidence, bool(has_changed))
    examples = names.watch(run.stream(nlp))  # records the slice of each Doc, for --by
    for corpus in score_blocks(nlp, pipe, examples, run.make_settings("Scoring")):
        summary.add(corpus, names.take())
    assert summary.total is not None  # score_blocks yields a block of texts or raises an error
    info = pipe.fit_info
    last = info.adaptations[-1] if info.adaptations else {"unit": info.unit, "docs": info.docs}  # fit or adaptation
    result: dict[str, Any] = {
        "pipe": pipe.name,
        "component": pipe.source.component,
        "layer": get_annotation(pipe.fit_info.layer).gold.name,
        "documents": summary.n_documents,
        "by": corpus.unit,  # the same in all blocks
        "tokens": summary.total.tokens,
        "confidence": confidence,
        "weights_changed": bool(has_changed),
        "learned_from": {"unit": last["unit"], "n": last["docs"], "kind": ADAPTED if info.adaptations else pipe.learned.origin},
        **summary.estimate(summary.total),
    }
    # A card has the lowest and the highest bias, mean score minus accuracy; the range of the accuracy follows from them.
    if pipe.fit_info.card_bias is not None and not pipe.of_entities and confidence == CARD_CONFIDENCE:
        lowest_bias, highest_bias = pipe.fit_info.card_bias
        mean = result["accuracy"]["mean_score"]
        result["accuracy"] |= {"low": max(mean - highest_bias, 0.0), "high": min(mean - lowest_bias, 1.0)}
    if run.by is not None:
        names.check()
        result["slices"] = {"by": run.by, "rows": summary.estimate_slices()}
    return result
