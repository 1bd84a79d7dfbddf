"""Estimate the accuracy on unlabelled texts.

`spacy calib expect`: how good a pipeline is on texts without gold, and whether that number can be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...cli.shared.command import check_confidence, check_option, command, option
from ...cli.shared.evidence import FitOverlap, GoldCheck, check_gold_of_corpus
from ...cli.shared.examples import data_files, holds_gold
from ...cli.shared.options import (
    CalibratedModel,
    Code,
    Columns,
    DocKey,
    ForceFile,
    Format,
    GoldPreproc,
    GpuId,
    NProcess,
    OnlyAttr,
    OnlyComponent,
    Silent,
    Texts,
)
from ...cli.shared.outputs import output_files
from ...cli.shared.run import Run, score
from ...cli.shared.screen import msg
from ...cli.shared.writing import deliver
from ...errors import CalibError, calib_error
from ...pipe.loading import check_readable
from .expect_output import ADAPTED, show

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ...annotations import Annotation
    from ...pairs.scored_corpus import ScoredCorpus
    from ...pipe.component import Calibrator
    from .few_labels import Read

GOLD_HELP = "A few labelled documents, picked at random from such texts, to correct the estimate"
BY_HELP = "Also estimate for each slice of texts that share a value of this key: of Doc.user_data, of lines of .jsonl, or a function of calib_keys"


FailOn = Annotated[
    str | None,
    option("Exit code 1 if the texts differ from the fit data: drift, unclear (too few to tell), or drift,unclear"),
]


def failing_verdicts(fail_on: str | None) -> list[str | None]:
    """The verdicts of --fail-on; None stands for a pipe without a record. RAISES C056: it names something else."""
    from ...pipe.record.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW

    verdicts: dict[str, list[str | None]] = {"drift": [DIFFERENT, OTHER_WEIGHTS], "unclear": [TOO_FEW, None]}
    given = [] if fail_on is None else [name.strip() for name in fail_on.split(",")]
    check_option("--fail-on", all(name in verdicts for name in given), "drift, unclear or drift,unclear", repr(fail_on))
    return [verdict for name in given for verdict in verdicts[name]]


def exit_code(values: Mapping[str, Any], result: dict[str, Any]) -> int:
    """1 where the verdict of a pipe is one that --fail-on names."""
    verdicts = [(one["drift"] or {"verdict": None})["verdict"] for one in each_pipe(result)]
    return int(any(verdict in failing_verdicts(values["fail_on"]) for verdict in verdicts))


def each_pipe(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What `expect` returned of each pipe."""
    return [result, *result.get("others", {}).values()]


@command(example="./calibrated texts.jsonl --per-doc", exit_code=exit_code)
def expect(
    model: CalibratedModel,
    data: Texts,
    *,
    component: OnlyComponent = None,
    attr: OnlyAttr = None,
    columns: Columns = None,
    gold: Annotated[Path | None, option(GOLD_HELP)] = None,
    confidence: Annotated[float, option("Confidence level of the intervals")] = 0.95,
    by: Annotated[str | None, option(BY_HELP, metavar="KEY")] = None,
    per_doc: Annotated[bool, option("Also estimate the accuracy of each document")] = False,
    check: Annotated[bool, option("Compare with the gold in DATA")] = False,
    fail_on: FailOn = None,
    output: Annotated[Path | None, option("JSON file for the result", "-o")] = None,
    format: Format = "table",
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Estimate the accuracy (and precision, recall and F of entities) on texts without gold, with an interval, and test whether the
    texts are like those of the fit: the estimates cannot be trusted if they are not.

    With --gold, a few labelled documents correct the estimates (prediction-powered inference), which then hold for other texts
    too; they are printed next to the estimate from the labelled documents only.

    RETURNS (dict): "pipe", "component", "layer", "documents" and what they are ("by"), "tokens", "confidence",
        "weights_changed" (see `SourceLookup.weights_changed`), "learned_from" ("unit" and "n" of the documents behind the intervals), and what `expectations` gives, or `with_gold` with "seen" of the labelled documents;
        on request "slices": "by" and "rows", see `Summed.expected_by_slice`, "per_doc" and "true", see `documents_of` and `true_values`, with the numbers of `checked_documents` and "seen", see
        `pairs.seen_texts.SeenShare`. Of a pipeline with several pipes: those of the first, "others": pipe -> its own, and "skipped": why others have none.
    RAISES C030: there is no gold to check against, or none in --gold. C226: a single document of --gold has labels. CalibError: every other
        fault of the input.
    """
    check_confidence(confidence)
    check_option("--by", by is None or gold is None, "left out beside --gold, which corrects all texts together", by)
    failing_verdicts(fail_on)
    how: dict[str, Any] = {
        "gold_preproc": gold_preproc,
        "doc_key": doc_key,
        "n_process": n_process,
        "gpu_id": gpu_id,
        "code": code,
    }
    run = Run(model, data, attr=attr, component=component, columns=columns, by=by, force=force, silent=silent, **how)
    nlp = run.begin(output_files(output), read=[] if gold is None else data_files(gold))
    pipes = run.pipes(nlp, allow_many=True)
    result = expected_of_all(nlp, pipes, lambda pipe: expected_quality(run, nlp, pipe, gold, confidence, check, per_doc))

    def show_all() -> None:
        for one in each_pipe(result):
            show(one)
        for sentence in result.get("skipped", ()):
            msg.warn(sentence)

    deliver(result, show_all, output=output, format=format, silent=silent)
    return result


def expected_of_all(nlp: Language, pipes: Sequence[Calibrator], ask: Callable[[Calibrator], dict[str, Any]]) -> dict[str, Any]:
    """What each of these pipes expects, by `ask`. RAISES CalibError: that of the first, where all fail."""
    results: list[dict[str, Any]] = []
    errors: list[CalibError] = []
    skipped: list[str] = []
    for pipe in pipes:
        try:
            check_readable(nlp, pipe)
            results.append(ask(pipe))
        except CalibError as error:
            errors.append(error)
            skipped.append(f"Nothing is expected by pipe {pipe.name}. {error.message}")
    if not results:
        raise errors[0]
    if len(pipes) == 1:
        return results[0]
    return {**results[0], "others": {one["pipe"]: one for one in results[1:]}, "skipped": skipped}


def expected_quality(
    run: Run, nlp: Language, pipe: Calibrator, gold: Path | None, confidence: float, check: bool, per_doc: bool
) -> dict[str, Any]:
    """What `expect` returns. gold (Path | None): Labelled documents. check (bool): Whether DATA has gold to compare with."""
    from ...annotations import get_annotation
    from ...gold.keys import Names
    from ...gold.reading import Noted
    from ...pipe.record.fit_record import read_record
    from .few_labels import Beside, Read, with_gold
    from .summary import Summed, checked_documents, corrected, true_values, without_trust

    annotation = get_annotation(pipe.fit_info.layer)
    record, labels = read_record(pipe), pipe.lookup.labels()
    noted, summed, beside, seen, names = Noted(annotation), Summed(labels, record), None, None, Names(run.by)
    if check and not holds_gold(run.data):
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    if gold is not None:
        few, few_seen = labelled_documents(run, gold, nlp, pipe, annotation)
        beside = Beside(few, labels, None if record is None else record.entities)
    corpora: Iterable[ScoredCorpus]
    if check:
        corpus, seen = scored_gold(run, nlp, pipe, lambda examples: names.over(noted.over(examples)))
        corpora = [corpus]
    else:
        corpora = run.score_blocks(nlp, pipe, sentences=False, also=lambda examples: names.over(noted.over(examples)))
    for corpus in corpora:
        if per_doc:  # labelled documents, where there are any, stand in for the fit
            summed.add_documents(corpus, record if beside is None else None, confidence, check)
        summed.add(corpus, names.take())
        read = Read(corpus, *noted.take())
        if beside is not None:
            beside.add(read)
    if check and not corpus.has_gold:
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    trusted = not pipe.lookup.weights_changed()
    result = {
        "pipe": pipe.name,
        "component": pipe.source.component,
        "layer": annotation.gold.name,
        "documents": summed.n_documents,
        "by": corpus.unit,
        "tokens": summed.sums.tokens,
        "confidence": confidence,
        "weights_changed": not trusted,
        "learned_from": learned_from(pipe),
        **summed.expected(pipe.fit_info.span_event, confidence),
    }
    result = result if trusted else without_trust(result)
    if beside is not None:
        result = with_gold(result, beside, confidence)
        result["gold"]["seen"] = few_seen
        result["trusted"] = not (few_seen and few_seen["many"])
    if check:
        result |= {"seen": seen, **checked_documents(corpus)}
        result["true"] = true_values(corpus, noted.n_gold, result)
    if run.by is not None:
        names.check()
        result["slices"] = {"by": run.by, "rows": summed.expected_by_slice(pipe.fit_info.span_event, confidence, trusted)}
    if per_doc:
        result["per_doc"] = summed.rows if beside is None else corrected(summed.rows, result["gold"]["correction"])
    return result


def learned_from(pipe: Calibrator) -> dict[str, Any]:
    """What the intervals are learned from: "unit" and "n" of the documents of the fit, or of the last adaptation, and which it was ("kind")."""
    info = pipe.fit_info
    last = info.adaptations[-1] if info.adaptations else {"unit": info.unit, "docs": info.docs}
    return {"unit": last["unit"], "n": last["docs"], "kind": ADAPTED if info.adaptations else pipe.learned.origin}


def scored_gold(
    run: Run, nlp: Language, pipe: Calibrator, also: Callable[[Iterable[Example]], Iterable[Example]]
) -> tuple[ScoredCorpus, dict[str, Any] | None]:
    """DATA with gold as the pipe scores it, and how much of it the fit has seen. also (Callable): Looks at the examples as they pass.

    RAISES C075, C151, C800 to C804: no token got a score, or the gold says nothing of the component.
    """
    from ...gold.checks import EXPECTED

    says = GoldCheck(pipe)
    corpus, seen = run.score(nlp, pipe, sentences=False, also=lambda examples: says.over(also(examples)))
    says.check(corpus, run.silent, EXPECTED)
    return corpus, seen


def labelled_documents(
    run: Run, gold: Path, nlp: Language, pipe: Calibrator, annotation: Annotation
) -> tuple[Read, dict[str, Any] | None]:
    """The documents of --gold as the pipe scores them, and how much of them the fit has seen.

    RAISES C030: they have no labels of the component. C690: they were labelled because they were doubtful. C800 to C804: they say nothing. C075, C151: no token got a score, or the component knows none of the labels.
    """
    from ...gold.checks import EXPECTED
    from ...gold.reading import Noted
    from .few_labels import Read

    noted, seen, says = Noted(annotation), FitOverlap(pipe), GoldCheck(pipe)
    corpus = score(
        nlp,
        pipe,
        says.over(seen.over(noted.over(run.stream(nlp, gold, True, [pipe])))),
        run.make_settings("Scoring --gold", gold, True),
    )
    if not corpus.has_gold:
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    check_gold_of_corpus(pipe, corpus, run.silent)
    says.check(corpus, run.silent, EXPECTED)
    return Read(corpus, *noted.take()), seen.to_dict()
