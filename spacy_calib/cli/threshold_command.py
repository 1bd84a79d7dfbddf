"""`spacy calib threshold`: the score cut-offs of entities that reach a precision, or that bound what is missed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..calibration.cutoffs import PER
from ..errors import calib_error
from ..pairs.documents import DOCUMENT
from ..pipe.loading import check_readable
from .shared.command import argument, check_confidence, check_option, command, option
from .shared.evidence import Seen, check_gold_says, show_seen
from .shared.options import (
    AllTypes,
    CalibratedModel,
    Code,
    DocKey,
    Format,
    GoldPreproc,
    GpuId,
    LabelMap,
    NProcess,
    OnlyAttr,
    OnlyComponent,
    Silent,
)  # fmt: skip
from .shared.outputs import Output, wanted_output
from .shared.run import GoldRun
from .shared.screen import Column, first_of, in_percent, msg, number, show_rows, whole
from .shared.writing import deliver, write_json

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.training import Example

    from ..pipe.component import Calibrator


DATA_HELP = (
    "Gold that the pipeline was not trained on: a .spacy or .conllu file, answers that an annotation tool exported (.jsonl, .json), "
    "or a folder of them"
)
RECALL_HELP = "Share of the tokens of gold entities that are to be flagged; beside --precision: both"


@command(example="./calibrated test.spacy --precision 0.9")
def threshold(
    model: CalibratedModel,
    data: Annotated[Path, argument("DATA", DATA_HELP)],
    *,
    precision: Annotated[float | None, option("Share of accepted entities that are to be right", "-p")] = None,
    recall: Annotated[float | None, option(RECALL_HELP, "-r")] = None,
    per: Annotated[str, option("One cut-off for all, or for each", words=PER)] = "all",
    confidence: Annotated[float, option("How sure it must be that the precision, or recall, is reached")] = 0.95,
    component: OnlyComponent = None,
    attr: OnlyAttr = None,
    output: Annotated[Path | None, option("JSON file for the cut-offs", "-o")] = None,
    apply: Annotated[Path | None, option("Folder for the pipeline with the cut-offs in it", "-a")] = None,
    allow_empty: Annotated[bool, option("Write the pipeline at --apply even where it would accept nothing")] = False,
    format: Format = "table",
    force: Annotated[bool, option("Replace a file at --output, and a pipeline at --apply", "-F")] = False,
    label_map: LabelMap = None,
    all_types: AllTypes = False,
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    silent: Silent = True,
) -> dict[str, Any]:
    """
    Find the lowest score cut-offs at which accepted entities reach a precision (--precision), or the highest at which no more
    tokens of entities are missed than asked for (--recall), with the stated confidence; or both, which leaves what is between
    them to be looked at. Best on gold that was not used for `calib fit`.

    RETURNS (dict): "pipe", "attr", "by", "seen" (see `pairs.seen_texts.SeenShare`); for a precision "event", "precision", "confidence", "per",
        "cutoffs": key -> cut-off or None, and "rows": for each key what it keeps, see `calibration.thresholds.Threshold`; for a recall
        "misses": the same with "recall", see `calibration.missed.rows_of`; for both "review": see `calibration.missed.review_of`. Of several
        pipes: those of the first, and "others": pipe -> its own.
    RAISES CalibError: every fault of the input.
    """
    from ..pipe.label_names import with_shown_names
    from .shared.writing import write_pipeline

    check_targets(precision, recall, per, confidence)
    run = GoldRun(
        model, data, attr=attr, component=component, label_map=label_map, all_types=all_types, gold_preproc=gold_preproc,
        doc_key=doc_key, n_process=n_process, gpu_id=gpu_id, code=code, force=force, silent=silent,
    )  # fmt: skip
    nlp = run.begin(wanted_output(output), folder=None if apply is None else Output("--apply", apply))
    examples = run.read(nlp)
    pipes = pipes_with_cutoffs(nlp, run.pipes(nlp, examples, several=True, only=may_have_cutoffs), recall)
    annotated = run.annotate(nlp, pipes, examples, what="Scoring entities")
    results = [_find(pipe, annotated, data, (precision, recall, per, confidence), silent) for pipe in pipes]
    result = {**results[0], **({"others": {other["pipe"]: other for other in results[1:]}} if results[1:] else {})}
    if output is not None:
        write_json(output, result)
    if apply is not None:
        check_reached(results, apply, allow_empty)
        write_pipeline(nlp, apply, force)

    def show_all() -> None:
        for pipe, one in zip(pipes, results, strict=True):
            show(with_shown_names(pipe, one), apply)

    deliver(result, show_all, output=None, format=format, silent=silent)
    return result


def check_reached(results: Sequence[dict[str, Any]], path: Path, allow_empty: bool) -> None:
    """RAISES C530: no cut-off of any pipe reaches the precision, and a pipeline that accepts nothing is not allowed."""
    rows = [row for result in results for row in result.get("rows", ())]
    if rows and not allow_empty and all(row["cutoff"] is None for row in rows):
        highest = first_of([text for result in results if (text := _highest_precisions(result))], _KEYS_NAMED, "; ")
        highest_note = f" (the highest that is reached: {highest})" if highest else ""
        raise calib_error("C530", precision=f"{100 * results[0]['precision']:g}", path=path, reached=highest_note)


def _find(
    pipe: Calibrator,
    examples: list[Example],
    data: Path,
    targets: tuple[float | None, float | None, str, float],
    silent: bool,
) -> dict[str, Any]:
    """Return the result for one pipe, see `find_cutoffs`, which gets the cut-offs that were found."""
    result, accepting, flagging = find_cutoffs(pipe, examples, data, *targets, silent)
    if pipe.spans.groups is None:
        pipe.tokens.label_cutoffs = accepting
    else:
        pipe.spans.cutoffs = accepting or pipe.spans.cutoffs
    pipe.tokens.recall_cutoffs = flagging or pipe.tokens.recall_cutoffs
    return result


def check_targets(precision: float | None, recall: float | None, per: str, confidence: float) -> None:
    """RAISES C307: neither precision nor recall. C056: a value out of range, or groups with --recall."""
    if precision is None and recall is None:
        raise calib_error("C307")
    for flag, value in (("--precision", precision), ("--recall", recall)):
        check_option(flag, value is None or 0 < value < 1, "between 0 and 1", value)
    check_option("--per", recall is None or per != "group", "all or label beside --recall", repr(per))
    check_confidence(confidence)


def find_cutoffs(
    pipe: Calibrator,
    examples: list[Example],
    data: Path,
    precision: float | None,
    recall: float | None,
    per: str,
    confidence: float,
    silent: bool = True,
) -> tuple[dict[str, Any], Any, Any]:
    """Return (result, cut-offs of precision, cut-offs of recall), None if not requested. RAISES C308 to C310, C800 to C804."""
    import numpy as np

    from ..calibration.missed import rows_of
    from ..pipe.cutoffs import parts_for_review, precision_cutoffs
    from ..pipe.gold_entities import entity_tokens
    from ..pipe.scorer import corpus_of

    corpus = corpus_of(examples, pipe.attr, pipe.lookup.labels())
    check_gold_says(pipe, examples, corpus, silent)
    spans = corpus if pipe.spans.groups is None else corpus.spans
    documents = {"unit": corpus.unit, "n": len(np.unique(corpus.documents_of(spans.docs[spans.right >= 0])))}
    overlap = Seen(pipe)
    deque(overlap.over(examples), maxlen=0)
    result: dict[str, Any] = {"pipe": pipe.name, "attr": pipe.attr, "by": documents, "seen": overlap.to_dict()}
    accepting = flagging = None
    if precision is not None:
        accepting, table = precision_cutoffs(pipe, corpus, precision, confidence, per)
        result |= table
    if recall is not None:
        if pipe.spans.groups is None:
            code = "C310" if corpus.row_unit == DOCUMENT else "C308"
            raise calib_error(code, name=pipe.name, component=pipe.source.component or "the source")
        tokens = entity_tokens(pipe, examples, corpus)
        if not tokens.wanted("all", "all").any():
            raise calib_error("C309", data=data)
        flagging = tokens.find(recall, confidence, per)
        result["misses"] = {**flagging.state(), "scored": int(tokens.scored.sum()), "rows": rows_of(tokens, flagging)}
        if accepting is not None:
            result["review"] = parts_for_review(pipe, corpus, tokens, accepting, flagging)
    return result, accepting, flagging


def may_have_cutoffs(pipe: Calibrator) -> bool:
    """Whether a pipe scores entities, documents or links."""
    from ..annotations import get_annotation

    annotation = get_annotation(pipe.fit_info.layer)
    return pipe.spans.groups is not None or annotation.unit == DOCUMENT or annotation.spans_are_units


def pipes_with_cutoffs(nlp: Language, pipes: Sequence[Calibrator], recall: float | None) -> list[Calibrator]:
    """Return the pipes that score entities, documents or links; for a recall only those of entities, if there are any. RAISES C065: there is none. C021, C069: see `check_readable`."""
    of_spans = [pipe for pipe in pipes if pipe.spans.groups is not None]
    candidates = of_spans if of_spans and recall is not None else [pipe for pipe in pipes if may_have_cutoffs(pipe)]
    if not candidates:
        raise calib_error("C065", name=pipes[0].name, component=pipes[0].source.component or "the source")
    for pipe in candidates:
        check_readable(nlp, pipe)
    return candidates


_KEYS_NAMED = 8


def _highest_precisions(result: dict[str, Any]) -> str:
    """Return the highest precision of each key where the target is not reached, and how much is kept; "" if none."""
    noun, lines = _unit_noun(result), []
    for row in result["rows"]:
        if row["highest"] is not None:
            label_prefix = "" if row["key"] == "all" else f"{row['key'] or '(no group)'} "
            precision, n_kept, share = (row["highest"][key] for key in ("precision", "kept", "share"))
            lines.append(
                f"{label_prefix}{in_percent(precision)} %, and keeps {n_kept:,} of {row[noun]:,} ({in_percent(share)} %)"
            )
    return first_of(lines, _KEYS_NAMED, "; ")


# Printing


def show(result: dict[str, Any], apply: Path | None) -> None:
    """Print what was found."""
    attr = result["attr"]
    attributes = []
    if "precision" in result:
        show_precision(result)
        if any(row["cutoff"] is not None for row in result["rows"]):
            attributes.append(f"{'Doc' if result['event'] is None else 'Span'}._.{attr}_accept")
    if "misses" in result:
        show_recall(result["misses"], None if "precision" in result else result["seen"], result["by"], apply)
        attributes += [f"Token._.{attr}_flag", f"doc.spans['{attr}_doubtful']"]
    if "review" in result:
        show_review(result["review"], result["precision"], result["misses"]["recall"], result["confidence"])
    if apply is not None and attributes:
        msg.good(f"The pipeline with these cut-offs ({', '.join(attributes)}): {apply}")


def _unit_noun(result: dict[str, Any]) -> str:
    return "documents" if result["event"] is None else "entities"


def _cutoff(row: dict[str, Any], digits: str) -> str:
    value = row.get("cutoff", "-")
    return value if value == "-" else "not reached" if value is None else format(value, digits)


def _format_range(row: dict[str, Any], scale: float, digits: int) -> str:
    return "-" if row["low"] is None else f"{number(scale * row['low'], digits)} to {number(scale * row['high'], digits)}"


def show_precision(result: dict[str, Any]) -> None:
    """Print the cut-offs for a precision and their guarantee."""
    from ..pairs.documents import by_unit

    target, confidence, noun = f"{100 * result['precision']:g} %", f"{100 * result['confidence']:g} %", _unit_noun(result)
    event = "categories of documents" if result["event"] is None else f"event: {result['event']}"
    msg.divider(f"Cut-offs for a precision of {target} ({event})")
    show_seen(result["seen"])
    columns = (
        Column("For", "key", lambda key: key or "(no group)", "l"),
        Column("Cut-off", "", lambda row: _cutoff(row, ".4f")),
        Column(noun.capitalize(), noun, whole),
        Column("Kept", "kept", whole),
        Column("% kept", "share", in_percent),
        Column("Precision", "precision", number),
        Column("Elsewhere", "", lambda row: _format_range(row, 1, 4)),
    )
    met = [row for row in result["rows"] if row[noun] or row["key"] == "all"]
    show_rows(met or result["rows"], columns)
    if met and (others := [row["key"] or "(no group)" for row in result["rows"] if row not in met]):
        msg.text(f"No {noun} on this gold, and no cut-off: {', '.join(others)}.")
    nowhere = all(row["cutoff"] is None for row in result["rows"])
    if nowhere:
        msg.warn(f"No cut-off reaches {target} with this confidence: ask for less, or give more gold.")
    highest = _highest_precisions(result)
    if highest:
        msg.text(
            f"The highest precision that is reached: {highest}. It was found by looking at this gold, so it is no promise; ask for it "
            "on other gold to have one."
        )
    if not nowhere:
        msg.text(
            f"In other texts of the same source the {noun} kept are right at least {target} of the time, with {confidence} confidence "
            f"({by_unit(**result['by'])}): of 100 files of gold like this one, {100 * result['confidence']:g} give a cut-off of which "
            f"that is true. Elsewhere: where the precision of as many {noun} kept from other texts lies, with the same confidence."
        )


_RECALL = (
    Column("For", "key", align="l"),
    Column("Cut-off", "", lambda row: _cutoff(row, ".3g")),
    Column("Tokens", "tokens", whole),
    Column("Found", "found", whole),
    Column("Recall", "recall", number),
    Column("% flagged", "share", in_percent),
    Column("Elsewhere", "", lambda row: _format_range(row, 100, 1)),
    Column("Entities", "entities", whole),
    Column("Touched", "touched", whole),
)


def show_recall(result: dict[str, Any], overlap: dict[str, Any] | None, by: dict[str, Any], apply: Path | None) -> None:
    """Print the cut-offs for a recall and their guarantee. result (dict): "misses" of `threshold`."""
    from ..pairs.documents import by_unit, counted

    target, confidence = f"{100 * result['recall']:g} %", f"{100 * result['confidence']:g} %"
    msg.divider(f"Cut-offs for a recall of {target} (tokens of gold entities)")
    show_seen(overlap)
    show_rows((line for row in result["rows"] for line in (row, {"key": "  predicted only", **row["predicted"]})), _RECALL)
    missing = [row["key"] for row in result["rows"] if row["cutoff"] is None]
    if missing:
        label = "No cut-off" if result["per"] == "all" else f"No cut-off of {', '.join(missing)}"
        consequence = "" if apply is None else f" The pipeline in {apply} flags every token for want of it."
        msg.warn(f"{label} is sure to find {target}: ask for less, or give more gold.{consequence}")
    if len(missing) == len(result["rows"]):
        return
    score, per_label = (
        ("P(inside an entity) = 1 - P(O)", "") if result["per"] == "all" else ("P(label)", " (for each label by itself)")
    )
    msg.text(
        f"Flagged is every token whose {score} reaches the cut-off, also where the recognizer said O. Of the tokens of gold entities "
        f"in other texts of the same source at most {100 * (1 - result['recall']):.3g} % are not flagged, with {confidence} confidence{per_label} "
        f"({by_unit(**by)}): of 100 files of gold like this one, {100 * result['confidence']:g} give cut-offs of which that is true. "
        f"Elsewhere: where the share of flagged tokens in {counted(**by)} of other texts lies, with the same confidence. Predicted "
        "only: the tokens of entities that were found."
    )


_REVIEW = (
    Column("Part", "part", align="l"),
    Column("Tokens", "tokens", whole),
    Column("% of tokens", "share", in_percent),
    Column("What", "what", align="l"),
    Column("Share", "right", number),
)


def show_review(parts: dict[str, Any], precision: float, recall: float, confidence: float) -> None:
    """Print how much is accepted, reviewed and dropped."""
    msg.divider("Accept, look, drop")
    accept, inside_share = parts["accept"], parts["drop"]["inside_share"]
    right = accept["right"] / accept["entities"] if accept["entities"] else None
    descriptions = {
        "accept": ("of the entities are right", right),
        "look": ("of the tokens are in an entity", parts["look"]["inside_share"]),
        "drop": ("of the tokens are in none", None if inside_share is None else 1 - inside_share),
    }
    show_rows(
        ({**parts[name], "part": name, "what": label, "right": share} for name, (label, share) in descriptions.items()), _REVIEW
    )
    joint_confidence = max(0.0, 1 - 2 * (1 - confidence))
    msg.text(
        "Accepted: the tokens of entities at or above their cut-off. Looked at: the flagged tokens of the rest. Dropped unseen: all "
        f"others. The precision of {100 * precision:g} % and the recall of {100 * recall:g} % are each promised by themselves, with "
        f"{100 * confidence:g} % confidence; both hold together with {100 * joint_confidence:g} % at least."
    )
