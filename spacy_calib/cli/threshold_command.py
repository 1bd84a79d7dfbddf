"""`spacy calib threshold`: find score cut-offs for a precision of entities, or for a recall of their tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from ..calibration.cutoffs import PER
from ..errors import calib_error
from ..pipe.pipeline import check_readable, fitted_pipes
from .evaluating.cutoff_tables import show_cutoffs
from .shared.command import argument, check_confidence, check_option, command, option
from .shared.options import CalibratedModel, Code, Format, GoldPreproc, GpuId, LabelMap, NProcess, OnlyComponent, Silent
from .shared.outputs import Output, output_files
from .shared.run import GoldRun
from .shared.writing import print_result, write_json, write_pipeline

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..calibration.missed import EntityTokens
    from ..gold.sampled_answers import SampledAnswers
    from ..pairs.scored_corpus import ScoredCorpus
    from ..pipe.component import Calibrator

DATA_HELP = "Gold that the pipeline was not trained on: a .spacy or .conllu file, an export of an annotation tool, or a folder"
PRECISION_HELP = "Required share of the accepted entities that are right, of all or by label: PERSON=.95,ORG=.8"
CHECK_HELP = "Test the cut-offs of the pipeline on answers to what it accepts (`rank --accepted --order random`)"
RECALL_HELP = "Required share of the tokens in gold entities that are flagged"


class Targets(NamedTuple):
    """What cut-offs have to reach.

    precision (float | dict | None): Share of the accepted entities that are right, or label -> share. recall (float | None):
    Share of the tokens in gold entities that are flagged. per (str): One cut-off for "all", or one for each "label" or "group".
    confidence (float): Confidence that the precision or recall is reached.
    """

    precision: Any
    recall: float | None
    per: str
    confidence: float


@command(example="./calibrated test.spacy --precision 0.9")
def threshold(
    model: CalibratedModel,
    data: Annotated[Path, argument("DATA", DATA_HELP)],
    *,
    precision: Annotated[str | None, option(PRECISION_HELP, "-p", metavar="SHARE")] = None,
    recall: Annotated[float | None, option(RECALL_HELP, "-r")] = None,
    per: Annotated[str, option("One cut-off for all, or one for each label or group", words=PER)] = "all",
    confidence: Annotated[float, option("Confidence that the precision or recall is reached")] = 0.95,
    check: Annotated[bool, option(CHECK_HELP)] = False,
    component: OnlyComponent = None,
    output: Annotated[Path | None, option("JSON file for the cut-offs", "-o")] = None,
    apply: Annotated[Path | None, option("Folder for the pipeline with the cut-offs", "-a")] = None,
    allow_empty: Annotated[bool, option("Write the pipeline to --apply even if it would accept nothing")] = False,
    format: Format = "table",
    force: Annotated[bool, option("Replace a file at --output, and a pipeline at --apply", "-F")] = False,
    label_map: LabelMap = None,
    gold_preproc: GoldPreproc = False,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    silent: Silent = True,
) -> dict[str, Any]:
    """With --precision, find the lowest score from which to accept entities so that the required share is right. With --recall,
    find the highest score from which to flag tokens so that the required share of the tokens in entities is flagged. With both,
    the tokens between the two cut-offs are left for review. Use gold that was not used for `calib fit`, or answers to a random
    sample of entities (`rank --order random`): these give a sentence that one may sign.

    RETURNS (dict): "pipe", "attr", "by" (unit and number of the documents), "seen" (their overlap with the fit data); for a
        precision "event", "precision", "confidence", "per", "cutoffs": key (label, group or "all") -> cut-off or None, and
        "rows": counts, precision and interval of each key; for a recall "misses": the same with "recall", by tokens; for both
        "review": counts of the tokens that are accepted, to be reviewed, or dropped; for answers to a sample "answers": number
        of each kind, and "promise": the sentence; with --check "verdict", and "rows" with counts of right answers. With several
        pipes this is of the first, and "others": name -> result.
    RAISES CalibError: any error in the input. Arguments: the annotation of each contains its help (`shared/options.py`).
    """
    targets = read_targets(precision, recall, per, confidence, check, apply)
    run = GoldRun(
        model, data, component=component, label_map=label_map, gold_preproc=gold_preproc,
        n_process=n_process, gpu_id=gpu_id, code=code, force=force, silent=silent,
    )  # fmt: skip
    nlp = run.begin(output_files(output), folder=None if apply is None else Output("--apply", apply))
    results = _results_by_pipe(run, nlp, targets, check)
    result = dict(results[0])
    if len(results) > 1:
        result["others"] = {pipe_result["pipe"]: pipe_result for pipe_result in results[1:]}
    if output is not None:
        write_json(output, result)
    if apply is not None:
        check_any_cutoff(results, apply, allow_empty)
        write_pipeline(nlp, apply, force)

    def show_all() -> None:
        for pipe_result in results:
            show_cutoffs(pipe_result, apply)

    print_result(result, show_all, format, silent)
    return result


def read_targets(
    precision: str | None, recall: float | None, per: str, confidence: float, check: bool, apply: Path | None
) -> Targets:
    """Parse and check these options of `threshold`; return what the cut-offs have to reach.

    RAISES C307: neither precision nor recall, nor --check. C056: a share, or the confidence, is no number or out of range;
    --recall with precisions of labels; --per group with these or --recall; --check with a precision, a recall or --apply.
    """
    shares = None if precision is None else read_precision(precision)
    if check:
        for flag, value in (("--precision", precision), ("--recall", recall), ("--apply", apply)):
            check_option(flag, value is None, "left out with --check", value)
    elif shares is None and recall is None:
        raise calib_error("C307")
    required_shares: list[float | None] = [*shares.values()] if isinstance(shares, dict) else [shares]
    for share in required_shares:
        check_option("--precision", share is None or 0 < share < 1, "between 0 and 1", share)
    check_option("--recall", recall is None or 0 < recall < 1, "between 0 and 1", recall)
    by_label = isinstance(shares, dict)
    check_option("--recall", recall is None or not by_label, "left out with a precision of each label", recall)
    check_option("--per", recall is None or per != "group", "all or label with --recall", repr(per))
    check_option("--per", not by_label or per != "group", "all or label with a precision of each label", repr(per))
    if by_label:
        per = "label"  # each label that is named gets its own cut-off
    check_confidence(confidence)
    return Targets(shares, recall, per, confidence)


def _results_by_pipe(run: GoldRun, nlp: Language, targets: Targets, check: bool) -> list[dict[str, Any]]:
    """Find cut-offs that reach `targets`, and set them on calib pipes of `nlp`; return the result of `threshold` for each pipe.

    The data of `run` are gold, or answers to a random sample that one of the pipes scored. check (bool): Whether the cut-offs
    that this pipe has are tested on the answers, and none are set. RAISES C532: `check` with gold. C056: a recall with answers.
    """
    from ..pipe.label_names import with_shown_names

    if (sampled := read_sampled_answers(run, nlp)) is not None:
        expected = "left out with answers about found entities, which lack the missed ones"
        check_option("--recall", targets.recall is None, expected, targets.recall)
        return [_use_answers(*sampled, run.data, targets, check)]
    if check:
        raise calib_error("C532", path=run.data)
    examples = run.read(nlp)
    chosen_pipes = run.pipes(nlp, examples, allow_many=True, is_useful=may_have_cutoffs)
    pipes = pipes_for_cutoffs(nlp, chosen_pipes, targets.recall)
    annotated_examples = run.annotate(nlp, pipes, examples, title="Scoring entities")
    return [with_shown_names(pipe, set_cutoffs(pipe, annotated_examples, run.data, targets, run.silent)) for pipe in pipes]


def check_any_cutoff(results: Sequence[dict[str, Any]], path: Path, allow_empty: bool) -> None:
    """Check that a result has a cut-off for a precision. RAISES C530: none has, and not `allow_empty`. path: For messages."""
    rows = [row for result in results for row in result.get("rows", ())]
    if rows and not allow_empty and all(row["cutoff"] is None for row in rows):
        raise calib_error("C530", precision=f"{100 * results[0]['precision']:g}", path=path)


def read_precision(value: Any) -> float | dict[str, float]:
    """Parse --precision: ".9" becomes 0.9, and "PERSON=.95,ORG=.8" becomes {label: share}. RAISES C056: something else."""
    parts = [part.rpartition("=") for part in str(value).split(",")]  # a number without a label has the name ""
    shares: dict[str, float] = {}
    with contextlib.suppress(ValueError):  # some share is no number: `shares` stays empty
        shares = {name: float(share) for name, _, share in parts}
    has_all_parts = len(shares) == len(parts)  # False also if a name is repeated
    is_number = "" in shares
    is_valid = has_all_parts and (len(parts) == 1 or not is_number)
    check_option("--precision", is_valid, "a number, or LABEL=SHARE,...", repr(value))
    return shares[""] if is_number else shares


def with_pipe_labels(pipe: Calibrator, shares: Any) -> Any:
    """Return a precision, or {name that users see: precision} with labels of the pipe as keys. RAISES C056: unknown name."""
    from ..pipe.label_names import shown_keys

    if not isinstance(shares, Mapping):
        return shares
    names = shown_keys(pipe)
    all_labels = pipe.lookup.span_labels() or pipe.lookup.labels()
    label_of = {names.get(label, label): label for label in all_labels if names.get(label) != ""}  # "": it has no scores
    for name in shares:
        check_option("--precision", name in label_of, f"of labels with a score ({', '.join(label_of)})", repr(name))
    return {label_of[name]: share for name, share in shares.items()}


def read_sampled_answers(run: GoldRun, nlp: Language) -> tuple[Calibrator, SampledAnswers] | None:
    """Return (pipe, answers) if the data of `run` are answers to a random sample that a pipe scored, else None.

    RAISES C533: no pipe of `nlp` scored it. C792: there are other answers, too. C692 to C696, C790: a file is unreadable.
    """
    from ..gold.file_readers import ANSWER_READERS
    from ..gold.sampled_answers import read_sample

    files = [file for file in run.data_files() if file.name.endswith((*ANSWER_READERS,))]
    # A sample contains the identity of the pipe that scored it.
    pipe_of = {pipe.learned.identity: pipe for pipe in fitted_pipes(nlp)} if files else {}
    sample = read_sample(files, run.data, {identity: pipe.lookup.span_labels() for identity, pipe in pipe_of.items()})
    return None if sample is None else (pipe_of[sample.calib], sample)


def _use_answers(pipe: Calibrator, sample: SampledAnswers, data: Path, targets: Targets, check: bool) -> dict[str, Any]:
    """Set cut-offs of a pipe for `targets` by a sample of answers; if `check`, only test its old ones; return the result."""
    from ..pipe.cutoffs import check_cutoffs_by, precision_cutoffs
    from ..pipe.label_names import shown_keys, with_shown_names

    if check:
        table = check_cutoffs_by(pipe, sample, data, targets.confidence)
    else:
        shares = with_pipe_labels(pipe, targets.precision)
        pipe.spans.cutoffs, table = precision_cutoffs(pipe, sample.pairs, shares, targets.confidence, targets.per, sample)
    cutoffs = pipe.spans.cutoffs
    promise = None if cutoffs is None else cutoffs.promise(shown_keys(pipe))
    result = {"pipe": pipe.name, "attr": pipe.attr, "seen": None, **table, "answers": dict(sample.counts), "promise": promise}
    return with_shown_names(pipe, result)


def set_cutoffs(pipe: Calibrator, examples: list[Example], data: Path, targets: Targets, silent: bool) -> dict[str, Any]:
    """Find the cut-offs of a calib pipe on gold, set them on the pipe, and return the result of `threshold` for it.

    examples (list[Example]): Gold with predictions of the pipeline. data (Path): The path of the gold, for messages.
    RAISES C308 to C310: no recall cut-off is possible. C800 to C804: gold that cannot show errors.
    """
    from ..gold.reading import texts_of
    from ..pipe.cutoffs import gold_pairs, parts_for_review, precision_cutoffs
    from ..pipe.gold_checks import check_outcomes_of, watch_all
    from ..pipe.scorer import corpus_of

    corpus = corpus_of(examples, pipe.attr, pipe.lookup.labels())
    check_outcomes_of(pipe, watch_all(pipe, examples), corpus, silent)
    documents = {"unit": corpus.unit, "n": _count_documents(pipe, corpus)}
    seen = pipe.learned.overlap_with(texts_of(pipe.annotation, examples))
    result: dict[str, Any] = {"pipe": pipe.name, "attr": pipe.attr, "by": documents, "seen": seen}
    accept_cutoffs = None  # lowest scores from which entities (or labels) are accepted
    if targets.precision is not None:
        shares = with_pipe_labels(pipe, targets.precision)
        accept_cutoffs, table = precision_cutoffs(pipe, gold_pairs(pipe, corpus), shares, targets.confidence, targets.per)
        result |= table
        if pipe.spans.groups is not None:
            pipe.spans.cutoffs = accept_cutoffs
        else:
            pipe.tokens.label_cutoffs = accept_cutoffs
    if targets.recall is not None:
        tokens = find_entity_tokens(pipe, examples, corpus, data)
        flag_cutoffs = tokens.find_cutoffs(targets.recall, targets.confidence, targets.per)
        result["misses"] = {**flag_cutoffs.state(), "scored": int(tokens.is_scored.sum()), "rows": tokens.rows_of(flag_cutoffs)}
        pipe.tokens.recall_cutoffs = flag_cutoffs
        if accept_cutoffs is not None:
            result["review"] = parts_for_review(pipe, corpus, tokens, accept_cutoffs, flag_cutoffs)
    return result


def _count_documents(pipe: Calibrator, corpus: ScoredCorpus) -> int:
    """Count the documents of a `corpus` that have predictions with gold: spans if the pipe calibrates them, else labels."""
    predictions = corpus.spans if pipe.spans.groups is not None else corpus
    has_gold = predictions.right >= 0  # -1: not known
    return len(np.unique(corpus.documents_of(predictions.docs[has_gold])))


def find_entity_tokens(pipe: Calibrator, examples: list[Example], corpus: ScoredCorpus, data: Path) -> EntityTokens:
    """Return the tokens of `examples`, scored in `corpus`, with their probabilities to be in an entity. data: Path of the gold.

    RAISES C308, C310: the pipe gives no such probabilities. C309: the gold has no entity.
    """
    from ..pipe.cutoffs import entity_tokens

    if pipe.spans.groups is None:
        code = "C310" if corpus.of_documents else "C308"
        raise calib_error(code, name=pipe.name, component=pipe.source.component or "the source")
    tokens = entity_tokens(pipe, examples, corpus)
    if not tokens.in_gold("all", "all").any():  # tokens of any type
        raise calib_error("C309", data=data)
    return tokens


def may_have_cutoffs(pipe: Calibrator) -> bool:
    """Whether a calib pipe scores what cut-offs accept: entities, other spans, documents or links."""
    annotation = pipe.annotation
    return pipe.spans.groups is not None or annotation.kind.of_documents or annotation.kind.of_links


def pipes_for_cutoffs(nlp: Language, pipes: Sequence[Calibrator], recall: float | None) -> list[Calibrator]:
    """Return the pipes that score entities, documents or links; if `recall` is not None, only those of entities, if any.

    RAISES C065: there is none. C021, C069, C084: a component is missing or disabled.
    """
    span_pipes = [pipe for pipe in pipes if pipe.spans.groups is not None]
    candidates = span_pipes if span_pipes and recall is not None else [pipe for pipe in pipes if may_have_cutoffs(pipe)]
    if not candidates:
        raise calib_error("C065", name=pipes[0].name, component=pipes[0].source.component or "the source")
    for pipe in candidates:
        check_readable(nlp, pipe)
    return candidates
