"""`spacy calib expect`: how good a pipeline is on texts without gold, and whether that number can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import calib_error
from ..pairs.documents import counted, extent
from .shared.checks import check_confidence, check_option
from .shared.command import option, options_command
from .shared.evidence import TOO_FEW_TO_TELL, Seen, check_gold_of_corpus, differences_in, show_other_weights, show_seen
from .shared.examples import data_files, holds_gold
from .shared.options import Columns, FirstAttr, Format, Texts
from .shared.run import Run, score
from .shared.screen import Column, interval, msg, number, percent, show_rows, whole
from .shared.writing import deliver

if TYPE_CHECKING:
    from spacy.language import Language

    from ..corpus.scored import ScoredCorpus
    from ..doc.annotations import Annotation
    from ..expect.few_labels import Read
    from ..pipe.component import Calibrator


_SHOWN = 40
NO_RECORD = (
    "The pipe holds no record of the documents it was fitted on (it had a single document): "
    "there is neither an interval nor a drift check; run `spacy calib fit` again, on two documents or more."
)


@dataclass(frozen=True)
class ExpectOptions(Run):
    """What `expect` tells of the texts."""

    data: Texts
    _: KW_ONLY
    attr: FirstAttr = None
    columns: Columns = None
    gold: Annotated[
        Path | None,
        option("A few labelled documents, picked at random from such texts: they correct what the scores say"),
    ] = None
    confidence: Annotated[float, option("How often an interval holds the true value")] = 0.95
    by: Annotated[
        str | None,
        option(
            "Tell it, too, of each part of the texts that shares a value of this key: of Doc.user_data, of the lines of .jsonl, or a function of calib_keys",
            metavar="KEY",
        ),
    ] = None
    per_doc: Annotated[bool, option("The expected accuracy of every document too")] = False
    check: Annotated[bool, option("Compare with the gold in DATA")] = False
    fail_on: Annotated[
        str | None,
        option("Exit code 1 where the texts are not like the fit data: drift, unclear (too few to tell), or drift,unclear"),
    ] = None
    output: Annotated[Path | None, option("JSON file for the result", "-o")] = None
    format: Format = "table"

    def read_files(self) -> list[Path]:
        """RAISES C051 to C053: --gold is no gold."""
        return [] if self.gold is None else data_files(self.gold)

    def check_options(self) -> None:
        """RAISES C056: no confidence, no verdict, or options that do not go together."""
        check_confidence(self.confidence)
        check_option(
            "--by", self.by is None or self.gold is None, "left out beside --gold, which corrects all texts together", self.by
        )
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


@options_command(
    ExpectOptions,
    example="./calibrated texts.jsonl --per-doc",
    exit_code=exit_code,
)
def expect(run: ExpectOptions) -> dict[str, Any]:
    """
    Tell the accuracy (and precision, recall and F of entities) to be expected on
    texts without gold, with an interval, and whether the texts are like those
    the pipe was fitted on: where they are not, the numbers cannot be trusted.

    With --gold, a few labelled documents tell by how much the scores are off
    (prediction-powered inference): the numbers then hold for other texts too, and
    stand beside what the labelled documents alone would say.

    RETURNS (dict): "pipe", "component", "layer", "documents" and what they are ("by"), "tokens", "confidence",
        "weights_changed" (see `SourceLookup.weights_changed`), and what `expectations` gives, or `with_gold` with "seen" of the labelled documents;
        on request "slices": "by" and "rows", see `Summed.expected_by_slice`, "per_doc" and "true", see `documents_of` and `true_values`, with the numbers of `checked_documents` and "seen", see
        `expect.record.SeenShare`.
    RAISES C030: there is no gold to check against, or none in --gold. C226: a single document of --gold has labels. CalibError: every other
        fault of the input.
    """
    nlp, pipe = run.open()
    from ..doc.annotations import get_annotation
    from ..doc.keys import Names
    from ..doc.reading import Noted
    from ..expect.few_labels import Beside, Read, with_gold
    from ..expect.summary import Summed, checked_documents, corrected, true_values, without_trust

    annotation = get_annotation(pipe.fit_info.layer)
    record, labels = pipe.learned.record, pipe.lookup.labels()
    noted, summed, beside, seen = Noted(annotation), Summed(labels, record), None, None
    names = Names(run.by)
    if run.check and not holds_gold(run.data):
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    if run.gold is not None:
        few, few_seen = labelled_documents(run, run.gold, nlp, pipe, annotation)
        beside = Beside(few, labels, None if record is None else record.entities)
    corpora: Iterable[ScoredCorpus]
    if run.check:
        corpus, seen = run.score(nlp, pipe, sentences=False, also=lambda examples: names.over(noted.over(examples)))
        corpora = [corpus]
    else:
        corpora = run.score_blocks(nlp, pipe, sentences=False, also=lambda examples: names.over(noted.over(examples)))
    for corpus in corpora:
        if run.per_doc:  # labelled documents, where there are any, stand in for the fit
            summed.add_documents(corpus, record if beside is None else None, run.confidence, run.check)
        summed.add(corpus, names.take())
        read = Read(corpus, *noted.take())
        if beside is not None:
            beside.add(read)
    if run.check and not corpus.has_gold:
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    trusted = not pipe.lookup.weights_changed()
    result = {
        "pipe": pipe.name,
        "component": pipe.source.component,
        "layer": annotation.gold.name,
        "documents": summed.n_documents,
        "by": corpus.unit,
        "tokens": summed.sums.tokens,
        "confidence": run.confidence,
        "weights_changed": not trusted,
        **summed.expected(pipe.fit_info.span_event, run.confidence),
    }
    if not trusted:
        result = without_trust(result)
    if beside is not None:
        result = with_gold(result, beside, run.confidence)
        result["gold"]["seen"] = few_seen
        result["trusted"] = not (few_seen and few_seen["many"])
    if run.check:
        result |= {"seen": seen, **checked_documents(corpus)}
        result["true"] = true_values(corpus, noted.n_gold, result)
    if run.by is not None:
        names.check()
        result["slices"] = {"by": run.by, "rows": summed.expected_by_slice(pipe.fit_info.span_event, run.confidence, trusted)}
    if run.per_doc:
        result["per_doc"] = summed.rows if beside is None else corrected(summed.rows, result["gold"]["correction"])
    deliver(result, lambda: show(result), output=run.output, format=run.format, silent=run.silent)
    return result


def labelled_documents(
    run: ExpectOptions, gold: Path, nlp: Language, pipe: Calibrator, annotation: Annotation
) -> tuple[Read, dict[str, Any] | None]:
    """The documents of --gold as the pipe scores them, and how much of them the fit has seen.

    RAISES C030: they have no labels of the component. C690: they do not stand for all. C075, C151: no token got a score, or the component knows none of the labels.
    """
    from ..doc.reading import Noted
    from ..expect.few_labels import Read, check_drawn

    noted, seen = Noted(annotation), Seen(pipe)
    corpus = score(nlp, pipe, seen.over(noted.over(run.stream(nlp, gold, True))), run.passing("Scoring --gold", gold, True))
    if not corpus.has_gold:
        raise calib_error("C030", layer=annotation.gold.name, component=pipe.source.component)
    check_gold_of_corpus(pipe, corpus, run.silent)
    check_drawn(noted.drawn)
    return Read(corpus, *noted.take()), seen.to_dict()


# Printing


def show(result: dict[str, Any]) -> None:
    """Print what is to be expected, the documents, and the verdict."""
    from ..doc.annotations import unit_of

    msg.divider(f"Expected quality of {result['component'] or 'the source'} ({result['layer']})")
    unit = unit_of(result["layer"])
    msg.text(extent(result["by"], result["documents"], unit, result["tokens"]))
    show_other_weights(result["weights_changed"])
    show_seen(result.get("seen"))
    show_seen(result["gold"]["seen"] if "gold" in result else None)
    show_estimates(result)
    if "gold" in result:
        show_gold(result, unit)
    if "slices" in result:
        show_slices(result["slices"], result["confidence"], unit)
    if "per_doc" in result:
        show_documents(result["per_doc"], result["confidence"], unit)
    corrected = "gold" in result and result["trusted"]
    if result["drift"] is not None:
        show_drift(result["drift"], unit, corrected)
    elif not corrected:
        msg.warn(NO_RECORD)


def show_estimates(result: dict[str, Any]) -> None:
    """Print the table of shares."""
    entities, true = result["entities"] or {}, result.get("true", {})
    given = {"accuracy": result["accuracy"], **{name: entities.get(name) for name in ("precision", "recall", "f")}}
    nothing = {"value": None, "inside": None}
    rows = [{"of": _title(name), **one, **true.get(name, nothing)} for name, one in given.items() if one is not None]
    columns = [
        Column("", "of", align="l"),
        Column("Expected", "expected", percent),
        Column(f"{100 * result['confidence']:g} % interval", "", interval),
    ]
    of_gold = [Column("True", "value", percent), Column("Inside", "inside", lambda inside: "yes" if inside else "NO")]
    show_rows(rows, columns + of_gold if true else columns)
    if true and result["checked"] < result["checkable"]:
        msg.text(
            f"The true values are of {result['checked']:,} of the {result['checkable']:,} documents with scores, those with gold."
        )
    accuracy = result["accuracy"]
    if accuracy["low"] is not None and "gold" not in result:
        msg.text(
            f"Accuracy: the mean score is {percent(accuracy['mean_score'])}; held-out scores of the fit data were off by "
            f"{100 * (accuracy['mean_score'] - accuracy['expected']):+.2f}, which is taken off."
        )
    if entities and entities["gold"] is not None:
        msg.text(
            f"To be expected: {entities['right']:,.0f} of the {entities['predicted']:,} entities found are right, and "
            f"{entities['gold']:,.0f} should have been found."
        )


def show_gold(result: dict[str, Any], unit: str) -> None:
    """Print what the labelled documents alone say, and by how much the scores narrow that. unit (str): What has labels."""
    gold = result["gold"]
    columns = (
        Column("By the labelled alone", "of", align="l"),
        Column("Share", "expected", percent),
        Column(f"{100 * result['confidence']:g} % interval", "", interval),
        Column("Narrower now by", "narrower", lambda share: f"{100 * share:.0f} %"),
        Column("By the scores alone", "scores_alone", lambda one: percent(one["expected"])),
    )
    show_rows(({"of": _title(name), **one["classical"], **one} for name, one in gold["shares"].items()), columns)
    msg.text(
        f"Corrected by {counted(gold['by'], gold['documents'])} with gold ({gold['tokens']:,} {unit}s); {gold['among']:,} of the "
        f"Docs stand among the texts, and are counted once. Accuracy: the mean score is {percent(result['accuracy']['mean_score'])}, "
        f"which the labels change by {100 * gold['correction']:+.2f} a {unit}. This holds for labelled documents that were "
        "picked at random from such texts."
    )


def _title(name: str) -> str:
    return "Accuracy" if name == "accuracy" else f"{'F' if name == 'f' else name.capitalize()} of entities"


def show_slices(told: dict[str, Any], confidence: float, unit: str) -> None:
    """Print what to expect of each slice, and which are not like the fit data. unit (str): What has labels."""
    msg.divider(f"By {told['by']}, the worst to be expected first")
    columns = (
        Column("Slice", "slice", align="l"),
        Column("Documents", "documents", whole),
        Column(f"{unit.capitalize()}s", "tokens", whole),
        Column("Expected", "accuracy", lambda accuracy: percent(accuracy["expected"])),
        Column(f"{100 * confidence:g} % interval", "accuracy", interval),
        Column("Texts", "drift", lambda drift: "" if drift is None else drift["verdict"], align="l"),
    )
    show_rows(told["rows"], columns)


def show_documents(documents: list[dict[str, Any]], confidence: float, unit: str) -> None:
    """Print the documents that are expected to be worst. unit (str): What has labels."""
    msg.divider("Documents, the worst to be expected first")
    worst = sorted(documents, key=lambda one: one["expected"])[:_SHOWN]
    true = any(one["true"] is not None for one in worst)
    columns = (
        Column("Doc", "doc"),
        Column(f"{unit.capitalize()}s", "tokens", whole),
        Column("Expected", "expected", percent),
        Column(f"{100 * confidence:g} % interval", "", interval),
        *([Column("True", "true", percent)] if true else []),
        Column("Begins", "text", align="l"),
    )
    show_rows(worst, columns)
    if len(documents) > len(worst):
        msg.text(f"{len(documents) - len(worst):,} more: see --output or --format json")


def show_drift(drift: dict[str, Any], unit: str, corrected: bool = False) -> None:
    """Print the comparison with the fit data, and what follows.

    unit (str): What has labels. corrected (bool): By labelled documents of the new kind.
    """
    from ..expect.drift import DIFFERENT, LIKE, OTHER_WEIGHTS

    msg.divider("Are these texts like the fit data?")
    columns = (
        Column("Difference of", "name", align="l"),
        Column("Found", "value", number),
        Column("Matters from", "limit", number),
        Column("By chance up to", "chance", number),
        Column("", "differs", lambda differs: "DIFFERS" if differs else "", align="l"),
    )
    show_rows(drift["checks"], columns)
    if drift["stretch"]:
        msg.text(f"Compared by stretches of about {drift['stretch']:,} {unit}s, as there are few documents, and long ones.")
    if corrected and drift["verdict"] != LIKE:
        msg.good(
            f"{drift['verdict'].capitalize()}. That matters to the scores alone: the numbers above are corrected by labels of these texts."
        )
    elif drift["verdict"] == OTHER_WEIGHTS:
        msg.fail("The fit data had scores of other weights: DO NOT TRUST the expected values, nor this comparison.")
    elif drift["verdict"] == LIKE:
        msg.good("Like the fit data: no difference is large enough to matter. The intervals hold for such texts.")
    elif drift["verdict"] == DIFFERENT:
        msg.warn(
            f"Differs from the fit data ({differences_in(drift)}): DO NOT TRUST the expected values. On texts of another kind they can be too high or too "
            "low, and the intervals do not hold. Label a few of these texts: `expect --gold` tells the accuracy, and `adapt` makes the scores true."
        )
    else:
        msg.warn(TOO_FEW_TO_TELL)
