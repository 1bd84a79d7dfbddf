"""Rename the gold labels of a command's data to the labels of its pipes, and report gold that is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .command import check_option
from .screen import inform, shorten, warn

if TYPE_CHECKING:
    from spacy.training import Example

    from ...annotations import Annotation, Kind
    from ...pairs.label_map import UnknownGold
    from ...pipe.component import Calibrator

# Maximum number of characters about labels in a warning of two lines: with the predicted labels, and without.
_PAIR_WIDTH, _LABELS_WIDTH = 36, 20


def match_gold(pipes: Iterable[Calibrator], examples: list[Example], silent: bool = True, **options: Any) -> list[Example]:
    """Rename gold labels in the examples, which are returned, to those of the pipes. options: Arguments of `match_labels`."""
    from ...pipe.label_names import match_labels

    schemes = [match_labels(pipe, examples, **options) for pipe in pipes]
    # LOC in the gold may stand for GPE and FAC, too: if that matters, print how it was read.
    sentences = {} if silent else dict.fromkeys(scheme.loc_sentence for scheme in schemes if scheme and scheme.loc_sentence)
    for sentence in sentences:
        inform(sentence)
    return examples


def check_whole_documents(kind: Kind, gold_preproc: bool) -> None:
    """Check that --gold-preproc, which splits documents, is off for a `kind` of labels of documents. RAISES C056: it is on."""
    expected = "left out for a component that labels whole documents"
    check_option("--gold-preproc", not (gold_preproc and kind.of_documents), expected, "it")


def report_dropped(annotation: Annotation, examples: Iterable[Example], silent: bool) -> None:
    """Warn of gold that is left out, unless silent. examples (Iterable[Example]): Gold with predictions of the pipeline."""
    from ...gold.left_out import DroppedGold

    if not silent:
        for sentence in DroppedGold.from_examples(annotation, examples).sentences():
            warn(sentence)


def report_unknown(pipe: Calibrator, unknown: UnknownGold, silent: bool) -> None:
    """Warn, unless silent, of gold labels that the component of a calib pipe does not know. unknown: Their counts."""
    if unknown.n and not silent:
        warn(unknown_sentence(unknown.message_fields(), pipe.source.component or "the source", pipe.annotation.kind.unit))


def unknown_sentence(words: Mapping[str, Any], component: str, unit: str, details: bool = False) -> str:
    """Return a sentence about the gold labels that a component does not know, cut to two lines unless `details`.

    words (Mapping): From `UnknownGold.message_fields`: "n" and "share" (in %) of the units with such labels, "unknown" (the
    labels), "pairs" ("PREDICTED for GOLD (n), ...", or "-"). unit (str): Noun for a unit, "token", if `words` has no "unit".
    """
    pairs, unknown = words["pairs"], words["unknown"]
    unit = words.get("unit", unit)
    shown_pairs = pairs if details else pairs.split(", ")[0]  # two lines have room for one pair
    predicts_nothing = pairs == "-" or shown_pairs.startswith("nothing for ")
    labels = unknown if predicts_nothing else f"{unknown}; it predicts {shown_pairs}"
    if not details and len(labels) > _PAIR_WIDTH:
        labels = shorten(unknown, _LABELS_WIDTH)
    return (
        f"{words['n']} {unit}s ({words['share']} %) have a gold label that '{component}' does not know ({labels}) and count as "
        "misses; `fit --map` renames them"
    )
