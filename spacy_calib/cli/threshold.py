"""`spacy calib threshold`: the score cut-offs of entities that reach a precision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..calibration.cutoffs import PER
from ..errors import calib_error
from .shared.checks import check_confidence, check_format, check_numbers, check_option
from .shared.examples import data_files, read_examples, run_pipes
from .shared.gold import check_gold_of_examples, check_has_gold
from .shared.loading import check_readable, import_user_code, load_pipeline, pipes_named, use_gpu
from .shared.options import Calibrated, Code, DocKey, Format, GoldPreproc, GpuId, NProcess, Silent, one_of
from .shared.outputs import check_files, check_pipeline_folder, wanted_output
from .shared.results import deliver, write_json
from .shared.screen import number, print_table, user_errors
from .shared.seen import seen_in, show_seen

if TYPE_CHECKING:
    from spacy.language import Language

    from ..pipe.component import Calibrator


def threshold_cli(
    # fmt: off
    model: Calibrated,
    data: Path = typer.Argument(
        ..., metavar="DATA", help="Gold that the pipeline was not trained on: a .spacy file or a folder of them"
    ),
    precision: float = typer.Option(..., "--precision", "-p", help="Share of accepted entities that are to be right"),
    per: str = typer.Option("all", "--per", help="One cut-off for all, or for each", **one_of(PER)),
    confidence: float = typer.Option(0.95, "--confidence", help="How sure it must be that the precision is reached"),
    attr: str = typer.Option(None, "--attr", help="The calib pipe with this prefix; else the first that scores entities"),
    output: Path = typer.Option(None, "--output", "-o", help="JSON file for the cut-offs"),
    apply: Path = typer.Option(None, "--apply", "-a", help="Folder for the pipeline with the cut-offs in it"),
    format: Format = "table",
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: bool = typer.Option(False, "--force", "-F", help="Replace a file at --output, and a pipeline at --apply"),
    silent: Silent = False,
    # fmt: on
) -> None:
    """
    Find the lowest score cut-offs at which accepted entities reach a precision
    with the stated confidence. Best on gold that was not used for `calib fit`.
    """
    with user_errors():
        threshold(
            model, data, precision=precision, per=per, confidence=confidence, attr=attr, output=output, apply=apply,
            gold_preproc=gold_preproc, doc_key=doc_key, format=format, n_process=n_process, gpu_id=gpu_id, code=code, force=force, silent=silent,
        )  # fmt: skip


def threshold(
    model: str,
    data: Path,
    *,
    precision: float,
    per: str = "all",
    confidence: float = 0.95,
    attr: str | None = None,
    output: Path | None = None,
    apply: Path | None = None,
    gold_preproc: bool = False,
    doc_key: str | None = None,
    format: str = "table",
    n_process: int = 1,
    gpu_id: int = -1,
    code: Path | None = None,
    force: bool = False,
    silent: bool = True,
) -> dict[str, Any]:
    """What the command does.

    RETURNS (dict): "pipe", "event", "precision", "confidence", "per", "cutoffs": key -> cut-off or None, and "rows": for each key what it
        keeps, see `entities.thresholds.Threshold`; "seen": see `seen.SeenShare`.
    RAISES CalibError: every fault of the input.
    """
    from ..calibration.cutoffs import Cutoffs
    from .shared.atomic import write_folder

    check_option("--precision", 0 < precision < 1, "between 0 and 1", precision)
    check_confidence(confidence)
    check_numbers(n_process=n_process, gpu_id=gpu_id)
    check_format(format)
    check_option("--per", per in PER, f"one of {', '.join(PER)}", repr(per))
    import_user_code(code)
    inputs = [data, *data_files(data), code]
    check_files(wanted_output(output), force, inputs=inputs, model=model, folder=apply)
    if apply is not None:
        check_pipeline_folder(apply, force, inputs=inputs, model=model, option="--apply")
    use_gpu(gpu_id)
    nlp = load_pipeline(model)
    pipe = span_pipe(nlp, attr)
    rows, seen, by = find_rows(
        nlp,
        pipe,
        data,
        precision,
        confidence,
        per,
        gold_preproc=gold_preproc,
        doc_key=doc_key,
        n_process=n_process,
        silent=silent,
    )
    cutoffs = Cutoffs(precision, confidence, per, {row["key"]: row["cutoff"] for row in rows})
    result = {
        "pipe": pipe.name,
        "attr": pipe.attr,
        "event": pipe.event,
        **cutoffs.to_dict(),
        "by": by,
        "seen": seen,
        "rows": rows,
    }
    if output is not None:
        write_json(output, result)
    if apply is not None:
        pipe.spans.cutoffs = cutoffs
        write_folder(apply, lambda folder: nlp.to_disk(folder), force)
    deliver(result, lambda: show_thresholds(result, apply), output=None, format=format, silent=silent)
    return result


def span_pipe(nlp: Language, attr: str | None) -> Calibrator:
    """The fitted calib pipe that scores entities.

    RAISES C027: there is no fitted pipe. C068: none of this prefix. C065: it calibrates a component without entities. C021, C069: see
    `check_readable`.
    """
    pipes = pipes_named(nlp, attr)
    with_spans = [pipe for pipe in pipes if pipe.spans.groups is not None]
    if not with_spans:
        raise calib_error("C065", name=pipes[0].name, component=pipes[0].source.component)
    check_readable(nlp, with_spans[0])
    return with_spans[0]


def find_rows(
    nlp: Language,
    pipe: Calibrator,
    data: Path,
    precision: float,
    confidence: float,
    per: str,
    *,
    gold_preproc: bool,
    doc_key: str | None,
    n_process: int,
    silent: bool,
) -> tuple[list[dict[str, Any]], dict[str, Any] | None, dict[str, Any]]:
    """(a row for each key: what its cut-off keeps; how much of the data the fit has seen; what was drawn as a whole: "unit" and "n").

    RAISES C030: the data has no gold entities. C151: the component knows none of their labels.
    """
    import numpy as np

    from ..calibration.cutoffs import keys_of
    from ..calibration.thresholds import find_thresholds
    from ..doc.annotations import get_annotation
    from ..pipe.scorer import corpus_of

    examples = read_examples(nlp, data, gold_preproc, doc_key)
    check_has_gold(examples, pipe)
    order = nlp.pipe_names
    done = list(
        run_pipes(
            nlp, examples, order[: order.index(pipe.name) + 1], silent=silent, what="Scoring entities", n_process=n_process
        )
    )
    annotation = get_annotation(pipe.fit_info.layer)
    if not any(annotation.known_tokens(example.reference).any() for example in done):
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    check_gold_of_examples(pipe, done, silent)
    labels = pipe.lookup.span_labels()
    judged = corpus_of(done, pipe.attr, pipe.lookup.labels()).span_pairs(labels)
    assert pipe.spans.groups is not None
    groups = pipe.spans.groups
    keys = keys_of(per, judged.pairs.tags, labels, groups)
    found = find_thresholds(judged.calibrated, judged.pairs.hits, judged.documents, keys, precision, confidence)
    wanted = {"all": ["all"], "label": list(labels), "group": list(groups.names)}[per]
    rows = []
    for key in dict.fromkeys([*wanted, *found]):
        one = found.get(key)
        rows.append(
            {"key": key, "cutoff": None, "entities": 0, "kept": 0, "share": None, "precision": None, "low": None, "high": None}
            if one is None
            else {
                "key": key,
                "cutoff": one.cutoff,
                "entities": one.spans,
                "kept": one.kept,
                "share": one.share,
                "precision": one.precision,
                "low": one.low,
                "high": one.high,
            }
        )
    return rows, seen_in(pipe, done), {"unit": judged.unit, "n": len(np.unique(judged.documents))}


def show_thresholds(result: dict[str, Any], apply: Path | None) -> None:
    """Print the cut-offs."""
    from ..pairs.documents import by_unit
    from .shared.screen import msg

    percent, sure = f"{100 * result['precision']:g} %", f"{100 * result['confidence']:g} %"
    msg.divider(f"Cut-offs for a precision of {percent} (event: {result['event']})")
    show_seen(result["seen"])
    rows = [
        (
            row["key"] or "(no group)",
            "not reached" if row["cutoff"] is None else number(row["cutoff"]),
            f"{row['entities']:,}",
            f"{row['kept']:,}",
            number(None if row["share"] is None else 100 * row["share"], 1),
            number(row["precision"]),
            "-" if row["low"] is None else f"{number(row['low'])} to {number(row['high'])}",
        )
        for row in result["rows"]
    ]
    header = ("For", "Cut-off", "Entities", "Kept", "% kept", "Precision", "Elsewhere")
    print_table(rows, header, ("l", *"rrrrrr"))
    if all(row["cutoff"] is None for row in result["rows"]):
        applied = "" if apply is None else f" The pipeline in {apply} accepts nothing."
        msg.warn(f"No cut-off reaches {percent} with this confidence: ask for less, or give more gold.{applied}")
        return
    msg.text(
        f"In texts of the same source ({by_unit(**result['by'])}) the entities kept are right at least {percent} of the time. Of all data sets on which this "
        f"command may be run, that claim is true for {sure}, and so is the interval under Elsewhere: where the precision of as many "
        "entities kept from others lies."
    )
    if apply is not None:
        msg.good(f"The pipeline with these cut-offs (Span._.{result['attr']}_accept): {apply}")
