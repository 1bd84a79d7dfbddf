"""What `spacy calib expect` prints: the numbers to be expected, the documents, and whether to trust them."""

from __future__ import annotations

from typing import Any

from ...pairs.documents import counted, extent
from .screen import msg, number, print_table
from .seen import show_other_weights, show_seen

_SHOWN = 40
NO_RECORD = (
    "The pipe holds no record of the documents it was fitted on (an older spacy-calib fitted it, or it had a single document): "
    "there is neither an interval nor a drift check; run `spacy calib fit` again, on two documents or more."
)

TOO_FEW_TO_TELL = (
    "Too few texts to tell: as few texts of the fit data differ so much by chance alone that a difference which matters could not be seen. "
    "The intervals hold if the texts are of the same kind; give more documents to know."
)


def show(result: dict[str, Any]) -> None:
    """Print what is to be expected, the documents, and the verdict."""
    from ...doc.annotations import unit_of

    msg.divider(f"Expected quality of {result['component'] or 'the source'} ({result['layer']})")
    unit = unit_of(result["layer"])
    msg.text(extent(result["by"], result["documents"], unit, result["tokens"]))
    show_other_weights(result["weights_changed"])
    show_seen(result.get("seen"))
    show_seen(result["gold"]["seen"] if "gold" in result else None)
    show_estimates(result)
    if "gold" in result:
        show_gold(result, unit)
    if "per_doc" in result:
        show_documents(result["per_doc"], result["confidence"], unit)
    corrected = "gold" in result and result["trusted"]
    if result["drift"] is not None:
        show_drift(result["drift"], unit, corrected)
    elif not corrected:
        msg.warn(NO_RECORD)


def show_estimates(result: dict[str, Any]) -> None:
    """Print the table of shares."""
    entities = result["entities"] or {}
    given = {"accuracy": result["accuracy"], **{name: entities.get(name) for name in ("precision", "recall", "f")}}
    true = result.get("true", {})
    rows = [
        (
            _title(name),
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
    if accuracy["low"] is not None and "gold" not in result:
        msg.text(
            f"Accuracy: the mean score is {_percent(accuracy['mean_score'])}; held-out scores of the fit data were off by "
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
    rows = [
        (
            _title(name),
            _percent(one["classical"]["expected"]),
            _range(one["classical"]),
            "-" if one["narrower"] is None else f"{100 * one['narrower']:.0f} %",
            "-" if one["scores_alone"] is None else _percent(one["scores_alone"]["expected"]),
        )
        for name, one in gold["shares"].items()
    ]
    header = (
        "By the labelled alone",
        "Share",
        f"{100 * result['confidence']:g} % interval",
        "Narrower now by",
        "By the scores alone",
    )
    print_table(rows, header, ("l", *"r" * (len(header) - 1)))
    msg.text(
        f"Corrected by {counted(gold['by'], gold['documents'])} with gold ({gold['tokens']:,} {unit}s); {gold['among']:,} of the Docs stand among "
        f"the texts, and are counted once. Accuracy: the mean score is {_percent(result['accuracy']['mean_score'])}, which the labels change by "
        f"{100 * gold['correction']:+.2f} a {unit}. This holds for labelled documents that were picked at random from such texts."
    )


def _title(name: str) -> str:
    return "Accuracy" if name == "accuracy" else f"{'F' if name == 'f' else name.capitalize()} of entities"


_INSIDE = {True: "yes", False: "NO", None: "-"}


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{number(100 * share, 2)} %"


def _range(estimate: dict[str, Any]) -> str:
    return "-" if estimate["low"] is None else f"{number(100 * estimate['low'], 2)} to {number(100 * estimate['high'], 2)}"


def show_documents(documents: list[dict[str, Any]], confidence: float, unit: str) -> None:
    """Print the documents that are expected to be worst. unit (str): What has labels."""
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
    header = (
        "Doc",
        f"{unit.capitalize()}s",
        "Expected",
        f"{100 * confidence:g} % interval",
        *(("True",) if true else ()),
        "Begins",
    )
    print_table(rows, header, (*"r" * (len(header) - 1), "l"))
    if len(documents) > len(worst):
        msg.text(f"{len(documents) - len(worst):,} more: see --output or --format json")


def show_drift(drift: dict[str, Any], unit: str, corrected: bool = False) -> None:
    """Print the comparison with the fit data, and what follows.

    unit (str): What has labels. corrected (bool): By labelled documents of the new kind.
    """
    from ...expect.drift import DIFFERENT, LIKE, OTHER_WEIGHTS

    msg.divider("Are these texts like the fit data?")
    rows = [
        (one["name"], number(one["value"]), number(one["limit"]), number(one["chance"]), "DIFFERS" if one["differs"] else "")
        for one in drift["checks"]
    ]
    header = ("Difference of", "Found", "Matters from", "By chance up to", "")
    print_table(rows, header, ("l", "r", "r", "r", "l"))
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


def differences_in(drift: dict[str, Any]) -> str:
    """In what texts differ from the fit data."""
    return ", ".join(one["name"] for one in drift["checks"] if one["differs"])
