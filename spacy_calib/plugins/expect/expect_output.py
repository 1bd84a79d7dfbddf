"""What `calib expect` prints."""

from __future__ import annotations

from typing import Any

from ...cli.shared.evidence import TOO_FEW_TO_TELL, differences_in, show_other_weights, show_seen
from ...cli.shared.screen import TableColumn, interval, msg, number, percent, show_rows, whole
from ...errors.advice import FITTED, PRETRAINED
from ...pairs.documents import caveat_of, counted, extent

_SHOWN = 40
# What a pipe learned its intervals from: a fit, a card, or an adaptation.
ADAPTED = "adapted"
# Why there is neither an interval nor a drift check, and what to do, by where the calibration comes from.
NO_RECORD = {
    FITTED: "The pipe holds no record of the documents it was fitted on (it had a single document): there is neither an interval nor a drift "
    "check; run `python -m spacy calib fit` again, on two documents or more.",
    PRETRAINED: "The pipe comes from a card, which holds no record of documents: there is neither an interval nor a drift check. Label about "
    "ten of these texts (`python -m spacy calib select MODEL TEXTS --for adapt --component {component}` chooses them), and give them to "
    "`expect --gold`, or to `python -m spacy calib adapt`.",
    ADAPTED: "The pipe holds no record of the documents it was adapted to (a single one, or answers about entities alone): there is neither an "
    "interval nor a drift check; label whole documents, two or more, and run `python -m spacy calib adapt` again.",
}
FEW_FITTED = (
    "Too few labelled documents to tell: the pipe knows the kind of text that it was {how} from {n} alone, and as few of them differ so much "
    "by chance that a difference which matters could not be seen. The intervals hold if the texts are of that kind; label more of them."
)


# What intervals promise: see the trials of docs/benchmarks.md.
_PROMISE = (
    "On other texts of the same origin about nineteen in twenty 95 % intervals hold; texts of another origin may pass this check, and intervals hold "
    "less often there"
)


def show(result: dict[str, Any]) -> None:
    """Print what is to be expected, the documents, and the verdict."""
    from ...annotations import unit_of

    msg.divider(f"Expected quality of {result['component'] or 'the source'} ({result['layer']})")
    unit = unit_of(result["layer"])
    title, caveat = interval_title(result), caveat_in(result)
    msg.text(extent(result["by"], result["documents"], unit, result["tokens"]))
    show_other_weights(result["weights_changed"])
    show_seen(result.get("seen"))
    show_seen(result["gold"]["seen"] if "gold" in result else None)
    show_estimates(result, title)
    if "gold" in result:
        show_gold(result, unit)
    if "slices" in result:
        show_slices(result["slices"], title, unit)
    if "per_doc" in result:
        show_documents(result["per_doc"], title, unit)
    is_corrected = "gold" in result and result["trusted"]
    if result["drift"] is not None:
        promise = caveat or _PROMISE
        show_drift(result["drift"], unit, is_corrected, promise, claimed=not caveat, few=too_few_in(result))
    elif not is_corrected:
        msg.warn(NO_RECORD[result["learned_from"]["kind"]].format(component=result["component"]))


def too_few_in(result: dict[str, Any]) -> str:
    """What there is too little of where a difference could not be seen: labelled documents, or texts."""
    learned_from = result["learned_from"]
    if learned_from["n"] >= result["documents"]:
        return TOO_FEW_TO_TELL
    how = "adapted to" if learned_from["kind"] == ADAPTED else "fitted on"
    return FEW_FITTED.format(how=how, n=counted(learned_from["unit"], learned_from["n"]))


def caveat_in(result: dict[str, Any]) -> str:
    """Why the intervals of a result are too narrow; "" where they need not be."""
    gold = result.get("gold")
    learned_from = result["learned_from"]
    return caveat_of(learned_from["unit"], learned_from["n"]) if gold is None else caveat_of(gold["by"], gold["documents"])


def interval_title(result: dict[str, Any]) -> str:
    """The title of a column of intervals."""
    return "If all were independent" if caveat_in(result) else f"{100 * result['confidence']:g} % interval"


def show_estimates(result: dict[str, Any], title: str) -> None:
    """Print the table of shares. title (str): Of the intervals."""
    entities, true = result["entities"] or {}, result.get("true", {})
    estimates = {"accuracy": result["accuracy"], **{name: entities.get(name) for name in ("precision", "recall", "f")}}
    nothing = {"value": None, "inside": None}
    rows = [
        {"of": _title(name), **estimate, **true.get(name, nothing)}
        for name, estimate in estimates.items()
        if estimate is not None
    ]
    columns = [
        TableColumn("", "of", align="l"),
        TableColumn("Expected", "expected", percent),
        TableColumn(title, "", interval),
    ]
    of_gold = [
        TableColumn("True", "value", percent),
        TableColumn("Inside", "inside", lambda is_inside: "yes" if is_inside else "NO"),
    ]
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
        TableColumn("By the labelled alone", "of", align="l"),
        TableColumn("Share", "expected", percent),
        TableColumn(interval_title(result), "", interval),
        TableColumn("Narrower now by", "narrower", lambda share: f"{100 * share:.0f} %"),
        TableColumn("By the scores alone", "scores_alone", lambda one: percent(one["expected"])),
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


def show_slices(slices: dict[str, Any], title: str, unit: str) -> None:
    """Print what to expect of each slice, and which are not like the fit data. title (str): Of the intervals. unit (str): What has labels."""
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


def show_documents(documents: list[dict[str, Any]], title: str, unit: str) -> None:
    """Print the documents that are expected to be worst. title (str): Of the intervals. unit (str): What has labels."""
    msg.divider("Documents, the worst to be expected first")
    worst = sorted(documents, key=lambda document: document["expected"])[:_SHOWN]
    true = any(document["true"] is not None for document in worst)
    columns = (
        TableColumn("Doc", "doc"),
        TableColumn(f"{unit.capitalize()}s", "tokens", whole),
        TableColumn("Expected", "expected", percent),
        TableColumn(title, "", interval),
        *([TableColumn("True", "true", percent)] if true else []),
        TableColumn("Begins", "text", align="l"),
    )
    show_rows(worst, columns)
    if len(documents) > len(worst):
        msg.text(f"{len(documents) - len(worst):,} more: see --output or --format json")


def show_drift(drift: dict[str, Any], unit: str, is_corrected: bool, hold: str, claimed: bool, few: str) -> None:
    """Print the comparison with the fit data, and what follows.

    unit (str): What has labels. is_corrected (bool): By labelled documents of the new kind. hold (str): How far the intervals hold; claimed (bool): that they do.
    few (str): See `too_few_in`.
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
    show_rows(drift["checks"], columns)
    if drift["stretch"]:
        msg.text(f"Compared by stretches of about {drift['stretch']:,} {unit}s, as there are few documents, and long ones.")
    if is_corrected and drift["verdict"] != LIKE:
        msg.good(
            f"{drift['verdict'].capitalize()}. That matters to the scores alone: the numbers above are corrected by labels of these texts."
        )
    elif drift["verdict"] == OTHER_WEIGHTS:
        msg.fail("The fit data had scores of other weights: DO NOT TRUST the expected values, nor this comparison.")
    elif drift["verdict"] == LIKE:
        summary = f"Like the fit data: no difference is large enough to matter. {hold}."
        if claimed:
            msg.good(summary)
        else:
            msg.warn(summary)
    elif drift["verdict"] == DIFFERENT:
        msg.warn(
            f"Differs from the fit data ({differences_in(drift)}): DO NOT TRUST the expected values. On texts of another kind they can be too high or too "
            "low, and the intervals do not hold. Label a few of these texts: `expect --gold` tells the accuracy, and `adapt` makes the scores true."
        )
    else:
        msg.warn(few)
