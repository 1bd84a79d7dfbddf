"""`spacy calib expect`: how good a pipeline is on texts without gold, and whether that number can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import calib_error
from .shared.checks import check_confidence, check_format, check_numbers, check_option
from .shared.gold import check_gold_of_corpus
from .shared.options import Calibrated, Code, DocKey, FirstAttr, ForceFile, Format, GoldPreproc, GpuId, NProcess, Silent, Texts
from .shared.outputs import check_files, wanted_output
from .shared.results import deliver
from .shared.scoring import open_pipeline, score
from .shared.screen import number, print_table, user_errors
from .shared.seen import seen_by, show_other_weights, show_seen, watch_for
from .shared.texts import stream_examples, text_files

if TYPE_CHECKING:
    from spacy.training import Example

    from ..doc.annotations import Annotation

_SHOWN = 40
NO_RECORD = (
    "The pipe holds no record of the documents it was fitted on (an older spacy-calib fitted it, or it had a single document): "
    "there is neither an interval nor a drift check; run `spacy calib fit` again, on two documents or more."
)


def expect_cli(
    # fmt: off
    model: Calibrated,
    data: Texts,
    attr: FirstAttr = None,
    confidence: float = typer.Option(0.95, "--confidence", help="How often an interval holds the true value"),
    per_doc: bool = typer.Option(False, "--per-doc", help="The expected accuracy of every document too"),
    check: bool = typer.Option(False, "--check", help="Compare with the gold in DATA"),
    fail_on: str = typer.Option(
        None,
        "--fail-on",
        help="Exit code 1 where the texts are not like the fit data: drift, unclear (too few to tell), or drift,unclear",
    ),
    seed: int = typer.Option(0, "--seed", help="Seed of the draws that show what chance makes"),
    output: Path = typer.Option(None, "--output", "-o", help="JSON file for the result"),
    format: Format = "table",
    gold_preproc: GoldPreproc = False,
    doc_key: DocKey = None,
    n_process: NProcess = 1,
    gpu_id: GpuId = -1,
    code: Code = None,
    force: ForceFile = False,
    silent: Silent = False,
    # fmt: on
) -> None:
    """
    Tell the accuracy (and precision, recall and F of entities) to be expected on
    texts without gold, with an interval, and whether the texts are like those
    the pipe was fitted on: where they are not, the numbers cannot be trusted.
    """
    with user_errors():
        verdicts = failing_verdicts(fail_on)
        result = expect(
            model, data, attr=attr, confidence=confidence, per_doc=per_doc, check=check, seed=seed, output=output, format=format,
            gold_preproc=gold_preproc, doc_key=doc_key, n_process=n_process, gpu_id=gpu_id, code=code, force=force, silent=silent,
        )  # fmt: skip
        if (result["drift"] or {"verdict": None})["verdict"] in verdicts:
            raise typer.Exit(1)


def failing_verdicts(fail_on: str | None) -> list[str | None]:
    """The verdicts that --fail-on names; None stands for a pipe without a record, which leaves it unclear.

    RAISES C056: it names something else.
    """
    from ..expect.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW

    verdicts: dict[str, list[str | None]] = {"drift": [DIFFERENT, OTHER_WEIGHTS], "unclear": [TOO_FEW, None]}
    given = [] if fail_on is None else [name.strip() for name in fail_on.split(",")]
    check_option("--fail-on", all(name in verdicts for name in given), "drift, unclear or drift,unclear", repr(fail_on))
    return [verdict for name in given for verdict in verdicts[name]]


def expect(
    model: str,
    data: Path,
    *,
    attr: str | None = None,
    confidence: float = 0.95,
    per_doc: bool = False,
    check: bool = False,
    seed: int = 0,
    output: Path | None = None,
    format: str = "table",
    gold_preproc: bool = False,
    doc_key: str | None = None,
    n_process: int = 1,
    gpu_id: int = -1,
    code: Path | None = None,
    force: bool = False,
    silent: bool = True,
) -> dict[str, Any]:
    """What the command does.

    RETURNS (dict): "pipe", "component", "layer", "documents" and what they are ("by"), "tokens", "confidence",
        "weights_changed" (see `SourceLookup.weights_changed`), and what `expectations` gives; on
        request "per_doc" and "true", see `documents_of` and `true_values`, with the numbers of `checked_documents` and "seen", see
        `seen.SeenShare`.
    RAISES C030: there is no gold to check against. CalibError: every other fault of the input.
    """
    check_confidence(confidence)
    check_numbers(seed=seed, n_process=n_process, gpu_id=gpu_id)
    check_format(format)
    text_files(data)
    check_files(wanted_output(output), force, inputs=[data, code], model=model)
    nlp, pipe = open_pipeline(model, attr, code=code, gpu_id=gpu_id)
    from ..doc.annotations import get_annotation
    from ..expect.summary import checked_documents, documents_of, expectations, spans_of, tokens_of, true_values, without_trust

    annotation = get_annotation(pipe.fit_info.layer)
    gold: list[int] = []
    watch = watch_for(pipe)
    examples = watch.over(_counting(stream_examples(nlp, data, gold_preproc=gold_preproc, doc_key=doc_key), annotation, gold))
    corpus = score(nlp, pipe, examples, n_process=n_process, silent=silent)
    if check and not corpus.has_gold:
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    if check:
        check_gold_of_corpus(pipe, corpus, silent)
    result = {
        "pipe": pipe.name,
        "component": pipe.source.component,
        "layer": annotation.gold.name,
        "documents": corpus.n_documents,
        "by": corpus.unit,
        "tokens": int(corpus.counted.sum()),
        "confidence": confidence,
        "weights_changed": pipe.lookup.weights_changed(),
        **expectations(
            tokens_of(corpus, pipe.lookup.labels()), spans_of(corpus), pipe.learned.record, pipe.event, confidence, seed
        ),
    }
    if result["weights_changed"]:
        result = without_trust(result)
    if check:
        result |= {"seen": seen_by(pipe, watch), **checked_documents(corpus)}
        result["true"] = true_values(corpus, sum(gold), result)
    if per_doc:
        result["per_doc"] = documents_of(corpus, pipe.learned.record, confidence, check)
    deliver(result, lambda: show(result), output=output, format=format, silent=silent)
    return result


def _counting(examples: Iterable[Example], annotation: Annotation, counts: list[int]) -> Iterator[Example]:
    """The examples; the number of gold spans of each is put into `counts`."""
    for example in examples:
        counts.append(len(annotation.spans_on(example.reference)))
        yield example


# Printing


def show(result: dict[str, Any]) -> None:
    """Print what is to be expected, the documents, and the verdict."""
    from ..pairs.documents import counted
    from .shared.screen import msg

    msg.divider(f"Expected quality of {result['component'] or 'the source'} ({result['layer']})")
    msg.text(f"{counted(result['by'], result['documents'])}, {result['tokens']:,} tokens")
    show_other_weights(result["weights_changed"])
    show_seen(result.get("seen"))
    show_estimates(result)
    if "per_doc" in result:
        show_documents(result["per_doc"], result["confidence"])
    if result["drift"] is None:
        msg.warn(NO_RECORD)
    else:
        show_drift(result["drift"])


def show_estimates(result: dict[str, Any]) -> None:
    """Print the table of shares."""
    from .shared.screen import msg

    entities = result["entities"] or {}
    given = {"accuracy": result["accuracy"], **{name: entities.get(name) for name in ("precision", "recall", "f")}}
    true = result.get("true", {})
    rows = [
        (
            f"{'F' if name == 'f' else name.capitalize()}{'' if name == 'accuracy' else ' of entities'}",
            _percent(one["expected"]),
            _range(one),
            *((_percent(true[name]["value"]), _INSIDE[true[name]["inside"]]) if name in true else ("-", "-") if true else ()),
        )
        for name, one in given.items()
        if one is not None
    ]
    header = ("", "Expected", f"{100 * result['confidence']:g} % interval", *(("True", "Inside") if true else ()))
    print_table(rows, header, ("l", *"r" * (len(header) - 1)))
    if true and result["checked"] < result["checkable"]:
        msg.text(
            f"The true values are of {result['checked']:,} of the {result['checkable']:,} documents with scores, those with gold."
        )
    accuracy = result["accuracy"]
    if accuracy["low"] is not None:
        msg.text(
            f"Accuracy: the mean score is {_percent(accuracy['mean_score'])}; held-out scores of the fit data were off by "
            f"{100 * (accuracy['mean_score'] - accuracy['expected']):+.2f}, which is taken off."
        )
    if entities and entities["gold"] is not None:
        msg.text(
            f"To be expected: {entities['right']:,.0f} of the {entities['predicted']:,} entities found are right, and "
            f"{entities['gold']:,.0f} should have been found."
        )


_INSIDE = {True: "yes", False: "NO", None: "-"}


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{number(100 * share, 2)} %"


def _range(estimate: dict[str, Any]) -> str:
    return "-" if estimate["low"] is None else f"{number(100 * estimate['low'], 2)} to {number(100 * estimate['high'], 2)}"


def show_documents(documents: list[dict[str, Any]], confidence: float) -> None:
    """Print the documents that are expected to be worst."""
    from .shared.screen import msg

    msg.divider("Documents, the worst to be expected first")
    worst = sorted(documents, key=lambda one: one["expected"])[:_SHOWN]
    true = any(one["true"] is not None for one in worst)
    rows = [
        (
            one["doc"],
            f"{one['tokens']:,}",
            _percent(one["expected"]),
            _range(one),
            *((_percent(one["true"]),) if true else ()),
            one["text"],
        )
        for one in worst
    ]
    header = ("Doc", "Tokens", "Expected", f"{100 * confidence:g} % interval", *(("True",) if true else ()), "Begins")
    print_table(rows, header, (*"r" * (len(header) - 1), "l"))
    if len(documents) > len(worst):
        msg.text(f"{len(documents) - len(worst):,} more: see --output or --format json")


def show_drift(drift: dict[str, Any]) -> None:
    """Print the comparison with the fit data, and what follows."""
    from ..expect.drift import DIFFERENT, LIKE, OTHER_WEIGHTS
    from .shared.screen import msg

    msg.divider("Are these texts like the fit data?")
    rows = [
        (one["name"], number(one["value"]), number(one["limit"]), number(one["chance"]), "DIFFERS" if one["differs"] else "")
        for one in drift["checks"]
    ]
    header = ("Difference of", "Found", "Matters from", "By chance up to", "")
    print_table(rows, header, ("l", "r", "r", "r", "l"))
    if drift["stretch"]:
        msg.text(f"Compared by stretches of about {drift['stretch']:,} tokens, as there are few documents, and long ones.")
    if drift["verdict"] == OTHER_WEIGHTS:
        msg.fail("The fit data had scores of other weights: DO NOT TRUST the expected values, nor this comparison.")
    elif drift["verdict"] == LIKE:
        msg.good("Like the fit data: no difference is large enough to matter. The intervals hold for such texts.")
    elif drift["verdict"] == DIFFERENT:
        named = ", ".join(one["name"] for one in drift["checks"] if one["differs"])
        msg.warn(
            f"Differs from the fit data ({named}): DO NOT TRUST the expected values. On texts of another kind they are most often too high, "
            "and the intervals do not hold. Fit the pipe again on gold of this kind."
        )
    else:
        msg.warn(
            "Too few texts to tell: as few texts of the fit data differ so much by chance alone that a difference which matters could not be "
            "seen. The intervals hold if the texts are of the same kind; give more documents to know."
        )
