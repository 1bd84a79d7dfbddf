"""Print the result of `calib expect`."""

from __future__ import annotations

from typing import Any

from ...cli.shared.screen import TableColumn, interval, msg, number, percent, show_other_weights, show_rows, whole
from ...pairs.documents import caveat_of, count_in_words, extent_in_words

# The "kind" in "learned_from" of a pipe with adaptations; the others are "fitted" and "pretrained".
ADAPTED = "adapted"
# Kind of calibration -> message on why a pipe without a record has no interval and no drift check, and what to do.
NO_RECORD = {
    "fitted": "The pipe holds no record of the documents it was fitted on (it had a single document): there is neither an "
    "interval nor a drift check; run `python -m spacy calib fit` again, on two documents or more.",
    "pretrained": "The pipe comes from a card, which holds no record of documents: there is no drift check, and no range but "
    "that of the card. Label about ten of these texts (`python -m spacy calib rank MODEL TEXTS --to-adapt --component "
    "{component}` chooses them), and give them to `python -m spacy calib adapt`.",
    ADAPTED: "The pipe holds no record of the documents it was adapted to (a single one, or answers about entities alone): "
    "there is neither an interval nor a drift check; label whole documents, two or more, and run `python -m spacy calib "
    "adapt` again.",
}
TOO_FEW_TO_TELL = (
    "Too few texts to tell: samples of so few texts from the fit data differ so much by chance that a real difference could "
    "not be seen. The intervals hold if the texts are of the same kind; give more documents to find out."
)
FEW_FITTED = (
    "Too few labelled documents to decide: the pipe was {how} {n}, which differ so much by chance that a difference that "
    "matters could not be seen. The intervals hold if the texts are of the same kind; label more documents."
)

# Intervals held in 92 to 98 of 100 samples of EWT, Porttinari, WNUT-17 and WikiNEuRal.
_PROMISE = (
    "On other texts of the same origin about nineteen in twenty 95 % intervals hold; texts of another origin may pass this "
    "check, and intervals hold less often there"
)


def show_result(result: dict[str, Any]) -> None:
    """Print the result of `expect` for one pipe: estimates, slices, and the comparison with the fit data."""
    from ...annotations import kind_of

    msg.divider(f"Expected quality of {result['component'] or 'the source'} ({result['layer']})")
    unit = kind_of(result["layer"]).unit
    title, caveat = interval_title(result), find_caveat(result)
    msg.text(extent_in_words(result["by"], result["documents"], unit, result["tokens"]))
    show_other_weights(result["weights_changed"])
    show_estimates(result, title)
    if "slices" in result:
        show_slices(result["slices"], title, unit)
    if result["drift"] is not None:
        show_drift(result["drift"], caveat or _PROMISE, is_good=not caveat, shortage=describe_shortage(result))
    else:
        msg.warn(NO_RECORD[result["learned_from"]["kind"]].format(component=result["component"]))


def describe_shortage(result: dict[str, Any]) -> str:
    """Return why a result of `expect` cannot show a difference from the fit data: too few documents in the fit, or texts."""
    from ...pipe.record.drift import MIN_DOCUMENTS

    learned_from, sentence = result["learned_from"], TOO_FEW_TO_TELL
    if learned_from["n"] < result["documents"]:  # the smaller set limits how well the two can be compared
        how = "adapted to" if learned_from["kind"] == ADAPTED else "fitted on"
        sentence = FEW_FITTED.format(how=how, n=count_in_words(learned_from["unit"], learned_from["n"]))
    is_compared = min(learned_from["n"], result["documents"]) >= MIN_DOCUMENTS
    return sentence if is_compared else f"{sentence} Fewer than {MIN_DOCUMENTS} are never compared."


def find_caveat(result: dict[str, Any]) -> str:
    """Return why intervals are too narrow: the fit took parts of documents for documents. Return "" if it did not."""
    return caveat_of(result["learned_from"]["unit"], result["learned_from"]["n"])


def interval_title(result: dict[str, Any]) -> str:
    """Return the title of the column of intervals in a result of `expect`: their confidence level, or what they are instead.

    A pretrained calibration has no record of its fit documents, but a range of the bias (mean score - accuracy) on new texts.
    """
    if result["learned_from"]["kind"] == "pretrained":
        return "Range of the card"
    return "If all were independent" if find_caveat(result) else f"{100 * result['confidence']:g} % interval"


def show_estimates(result: dict[str, Any], title: str) -> None:
    """Print accuracy, and precision, recall and F of entities, from a result of `expect`. title: Of the column of intervals."""
    entities = result["entities"] or {}
    estimates = {
        "Accuracy": result["accuracy"],
        "Precision of entities": entities.get("precision"),
        "Recall of entities": entities.get("recall"),
        "F of entities": entities.get("f"),
    }
    rows = [{"of": name, **estimate} for name, estimate in estimates.items() if estimate is not None]
    columns = [TableColumn("", "of", align="l"), TableColumn("Expected", "expected", percent), TableColumn(title, "", interval)]
    show_rows(rows, columns)
    accuracy = result["accuracy"]
    if accuracy["low"] is not None and result["learned_from"]["kind"] != "pretrained":
        msg.text(
            f"Accuracy: the mean score is {percent(accuracy['mean_score'])}; held-out scores of the fit data were off by "
            f"{100 * (accuracy['mean_score'] - accuracy['expected']):+.2f}, which is taken off."
        )
    if entities and entities["gold"] is not None:
        msg.text(
            f"Expected: {entities['right']:,.0f} of the {entities['predicted']:,} predicted entities are right, and the texts "
            f"have {entities['gold']:,.0f} entities."
        )


def show_slices(slices: dict[str, Any], title: str, unit: str) -> None:
    """Print the expected accuracy and drift verdict of each slice. title: Of the intervals. unit: "token" or "document"."""
    msg.divider(f"By {slices['by']}, the worst to be expected first")
    columns = (
        TableColumn("Slice", "slice", align="l"),
        TableColumn("Documents", "documents", whole),
        TableColumn(f"{unit.capitalize()}s", "tokens", whole),
        TableColumn("Expected", "accuracy", lambda accuracy: percent(accuracy["expected"])),
        TableColumn(title, "accuracy", interval),
        TableColumn("Texts", "drift", lambda drift: "" if drift is None else drift["verdict"], align="l"),
    )
    show_rows(slices["rows"], columns)


def show_drift(drift: dict[str, Any], promise: str, is_good: bool, shortage: str) -> None:
    """Print the comparison with the fit data, and whether to trust the estimates. drift (dict): "verdict" and "checks".

    promise (str): Sentence for texts like the fit data on how often the intervals hold; printed as a success if `is_good`, else
    as a warning. shortage (str): Sentence for too few texts on why a difference could not be seen.
    """
    from ...pipe.record.drift import DIFFERENT, LIKE, OTHER_WEIGHTS

    msg.divider("Are these texts like the fit data?")
    columns = (
        TableColumn("Difference of", "name", align="l"),
        TableColumn("Found", "value", number),
        TableColumn("Matters from", "limit", number),
        TableColumn("By chance up to", "chance", number),
        TableColumn("", "differs", lambda differs: "DIFFERS" if differs else "", align="l"),
    )
    if drift["checks"]:
        show_rows(drift["checks"], columns)
    if drift["verdict"] == OTHER_WEIGHTS:
        msg.fail("The fit data had scores of other weights: DO NOT TRUST the expected values, nor this comparison.")
    elif drift["verdict"] == LIKE:
        summary = f"Like the fit data: no difference is large enough to matter. {promise}."
        show = msg.good if is_good else msg.warn
        show(summary)
    elif drift["verdict"] == DIFFERENT:
        differences = ", ".join(check["name"] for check in drift["checks"] if check["differs"])
        msg.warn(
            f"Differs from the fit data ({differences}): DO NOT TRUST the expected values. On texts of another kind "
            "they can be too high or too low, and the intervals do not hold. Label a few of these texts, and give them to "
            "`adapt`, which calibrates the scores for such texts."
        )
    else:
        msg.warn(shortage)
