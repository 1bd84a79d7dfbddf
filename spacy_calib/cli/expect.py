"""`spacy calib expect`: how good a pipeline is on texts without gold, and whether that number can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import calib_error
from .shared.checks import check_confidence, check_option
from .shared.command import command
from .shared.options import FirstAttr, Format, Texts
from .shared.results import deliver
from .shared.run import Run
from .shared.screen import msg, number, print_table
from .shared.seen import show_other_weights, show_seen

if TYPE_CHECKING:
    from spacy.training import Example

    from ..doc.annotations import Annotation

_SHOWN = 40
NO_RECORD = (
    "The pipe holds no record of the documents it was fitted on (an older spacy-calib fitted it, or it had a single document): "
    "there is neither an interval nor a drift check; run `spacy calib fit` again, on two documents or more."
)


@dataclass(frozen=True)
class ExpectOptions(Run):
    """What `expect` tells of the texts."""

    data: Texts
    _: KW_ONLY
    attr: FirstAttr = None
    confidence: Annotated[float, typer.Option("--confidence", help="How often an interval holds the true value")] = 0.95
    per_doc: Annotated[bool, typer.Option("--per-doc", help="The expected accuracy of every document too")] = False
    check: Annotated[bool, typer.Option("--check", help="Compare with the gold in DATA")] = False
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            help="Exit code 1 where the texts are not like the fit data: drift, unclear (too few to tell), or drift,unclear",
        ),
    ] = None
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draws that show what chance makes")] = 0
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file for the result")] = None
    format: Format = "table"

    def check_options(self) -> None:
        """RAISES C056: no confidence, or no verdict."""
        check_confidence(self.confidence)
        failing_verdicts(self.fail_on)


def failing_verdicts(fail_on: str | None) -> list[str | None]:
    """The verdicts that --fail-on names; None stands for a pipe without a record, which leaves it unclear.

    RAISES C056: it names something else.
    """
    from ..expect.drift import DIFFERENT, OTHER_WEIGHTS, TOO_FEW

    verdicts: dict[str, list[str | None]] = {"drift": [DIFFERENT, OTHER_WEIGHTS], "unclear": [TOO_FEW, None]}
    given = [] if fail_on is None else [name.strip() for name in fail_on.split(",")]
    check_option("--fail-on", all(name in verdicts for name in given), "drift, unclear or drift,unclear", repr(fail_on))
    return [verdict for name in given for verdict in verdicts[name]]


def exit_code(run: ExpectOptions, result: dict[str, Any]) -> int:
    """1 where the verdict is one that --fail-on names."""
    return int((result["drift"] or {"verdict": None})["verdict"] in failing_verdicts(run.fail_on))


@command(
    ExpectOptions,
    does="Tell the accuracy to be expected on texts without gold",
    example="./calibrated texts.jsonl --per-doc",
    exit_code=exit_code,
)
def expect(run: ExpectOptions) -> dict[str, Any]:
    """
    Tell the accuracy (and precision, recall and F of entities) to be expected on
    texts without gold, with an interval, and whether the texts are like those
    the pipe was fitted on: where they are not, the numbers cannot be trusted.

    RETURNS (dict): "pipe", "component", "layer", "documents" and what they are ("by"), "tokens", "confidence",
        "weights_changed" (see `SourceLookup.weights_changed`), and what `expectations` gives; on
        request "per_doc" and "true", see `documents_of` and `true_values`, with the numbers of `checked_documents` and "seen", see
        `expect.seen.SeenShare`.
    RAISES C030: there is no gold to check against. CalibError: every other fault of the input.
    """
    nlp, pipe = run.open()
    from ..doc.annotations import get_annotation
    from ..expect.summary import checked_documents, documents_of, expectations, spans_of, tokens_of, true_values, without_trust

    annotation = get_annotation(pipe.fit_info.layer)
    gold: list[int] = []
    corpus, seen = run.score(
        nlp, pipe, sentences=False, judge=run.check, also=lambda examples: _counting(examples, annotation, gold)
    )
    if run.check and not corpus.has_gold:
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    result = {
        "pipe": pipe.name,
        "component": pipe.source.component,
        "layer": annotation.gold.name,
        "documents": corpus.n_documents,
        "by": corpus.unit,
        "tokens": int(corpus.counted.sum()),
        "confidence": run.confidence,
        "weights_changed": pipe.lookup.weights_changed(),
        **expectations(
            tokens_of(corpus, pipe.lookup.labels()), spans_of(corpus), pipe.learned.record, pipe.event, run.confidence, run.seed
        ),
    }
    if result["weights_changed"]:
        result = without_trust(result)
    if run.check:
        result |= {"seen": seen, **checked_documents(corpus)}
        result["true"] = true_values(corpus, sum(gold), result)
    if run.per_doc:
        result["per_doc"] = documents_of(corpus, pipe.learned.record, run.confidence, run.check)
    deliver(result, lambda: show(result), output=run.output, format=run.format, silent=run.silent)
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
