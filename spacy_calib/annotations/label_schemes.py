"""Matching of gold labels with the labels of a component, if the gold has other names or a coarser or finer scheme.

OntoNotes distinguishes three types of locations (GPE, FAC, LOC); coarse schemes call them all LOC. So the meaning of LOC
depends on the other labels of the gold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from spacy.strings import get_string_id
from spacy.training import Example

from ..pairs.label_map import split_prefix
from ..types import OUTSIDE

if TYPE_CHECKING:
    from .annotation import Annotation, Hashes

COARSE = {"PERSON": "PER", "GPE": "LOC", "FAC": "LOC"}  # label of OntoNotes -> its name in the coarse scheme
LOC, _FINE_LOCATIONS = "LOC", ("GPE", "FAC")
# Other common names, in capitals: for proposals only.
_COMMON = {
    "PERSON": ("PER", "PERS", "PEOPLE"), "PER": ("PERSON", "PERS", "PEOPLE"), "ORG": ("ORGANIZATION", "ORGANISATION"),
    "GPE": ("LOC", "LOCATION", "PLACE"), "FAC": ("FACILITY", "LOC", "LOCATION", "PLACE"), "LOC": ("LOCATION", "PLACE", "GPE"),
}  # fmt: skip
_MIN_SPANS = 3  # minimum number of spans with a pair of labels for a proposed map
_OUT = np.uint64(get_string_id(OUTSIDE))


@dataclass(frozen=True)
class LabelScheme:
    """The correspondence between the labels of a component, of its calib pipe and of the gold.

    Several labels of a component may mean the same in the gold (GPE, FAC and LOC are all LOC); the first stands for all.
    table (Mapping): Label of the component -> its name in the pipe, "" for none; labels without entry keep their name.
    first_of (Mapping): Label of the component -> the first of the labels that mean the same in the gold.
    gold (Mapping): Gold label -> the first label of the component that it means. unused_labels (tuple): Labels of the component
    that the gold never uses. is_coarse (bool | None): Whether the gold's LOC means all locations; None if it does not matter.
    """

    table: Mapping[str, str]
    first_of: Mapping[str, str]
    gold: Mapping[str, str]
    unused_labels: tuple[str, ...]
    is_coarse: bool | None

    @cached_property
    def first_hashes(self) -> dict[int, int]:
        """The mapping `first_of` with hashes in place of labels."""
        return {get_string_id(label): get_string_id(first) for label, first in self.first_of.items()}

    @cached_property
    def unused_hashes(self) -> frozenset[int]:
        """The hashes of `unused_labels`, the labels of the component that the gold never uses."""
        return frozenset(map(get_string_id, self.unused_labels))

    def name(self, label: str) -> str:
        """Return the name that the calib pipe uses for a label of the component, "" for none."""
        return self.table.get(label, label)

    @property
    def renamed_labels(self) -> dict[str, str]:
        """Gold label -> its name in the pipe ("" for none), for gold labels that have another name there."""
        return {name: self.name(label) for name, label in self.gold.items() if self.name(label) != name}

    def unknown_in(self, confusions: Iterable[tuple[str, str]]) -> list[str]:
        """Return the gold labels that match no label of the component. confusions: (predicted label, gold label) pairs."""
        known_names = {*self.gold, *map(self.name, self.gold.values())}  # as in the gold, and as in the pipe
        return list(dict.fromkeys(name for _, name in confusions if name not in known_names))

    @property
    def is_plain(self) -> bool:
        """Whether the names in the pipe merge exactly the labels that the gold merges, so that these names can be compared."""
        # Labels have the same name in the pipe if and only if they have the same first label in the gold.
        pairs = {(self.name(label), first) for label, first in self.first_of.items() if self.name(label)}
        is_one_to_one = len(pairs) == len({name for name, _ in pairs}) == len({first for _, first in pairs})
        return is_one_to_one and not self.unused_labels

    @property
    def loc_sentence(self) -> str:
        """A sentence for messages: how the gold's label LOC was understood; "" if nothing depends on it."""
        if self.is_coarse:
            return "The gold has no GPE and no FAC: read as a coarse scheme, whose LOC stands for GPE, LOC and FAC"
        return "" if self.is_coarse is None else "The gold has GPE or FAC: read as OntoNotes' scheme, where LOC is LOC"


def read_scheme(
    labels: Sequence[str],
    counts: Mapping[str, int],
    table: Mapping[str, str],
    extra_maps: Iterable[Mapping[str, str]] = (),
    user_map: Mapping[str, str] | None = None,
    rejected_labels: Iterable[str] = (),
) -> LabelScheme:
    """Match the labels of some gold data with the labels of a component.

    labels (Sequence[str]): Labels of the component. counts (Mapping): Gold label -> its frequency in all of the gold. table
    (Mapping): Label of the component -> its name in the pipe, "" if the pipe drops it. extra_maps (Iterable): Maps from labels
    to further names. user_map (Mapping | None): Label of the component -> its name in this gold; if given, it alone decides.
    rejected_labels (Iterable): Labels that annotators rejected; they decide what LOC means only if no location was accepted.
    """
    maps, gold_names = [table, *extra_maps, COARSE], dict.fromkeys([*counts, *rejected_labels])
    loc_names = {LOC, *(names[LOC] for names in maps if LOC in names)}  # LOC, and its names in the maps
    # True: the gold's LOC means all locations. False: only LOC. None: this plays no role, so LOC is matched like other labels.
    is_coarse = None if user_map is not None else _is_coarse(labels, counts, gold_names, maps, loc_names)
    first_of: dict[str, str] = {}  # label -> the first label that means the same in the gold
    gold: dict[str, str] = {}
    for name in gold_names:
        if user_map is not None:
            meant_labels = [label for label in labels if user_map.get(label, label) == name]
        elif name in loc_names and is_coarse is not None:  # what LOC means depends on the other gold labels
            meant_labels = _locations_meant(name, labels, table, loc_names, is_coarse)
        else:
            meant_labels = _labels_meant(name, labels, maps)
        if meant_labels:  # an earlier gold label may mean one of them, too: then all of them share its first label
            first = next((first_of[label] for label in meant_labels if label in first_of), meant_labels[0])
            for label in meant_labels:
                first_of.setdefault(label, first)
            gold[name] = first
    # Labels that the pipe drops play no role. If no gold label matches, nothing shows which labels the gold never uses.
    compared_labels = [label for label in labels if table.get(label, label) != ""] if gold else []
    unused_labels = tuple(label for label in compared_labels if label not in first_of)
    return LabelScheme(table, first_of, gold, unused_labels, is_coarse)


def _is_coarse(
    labels: Sequence[str],
    counts: Mapping[str, int],
    gold_names: Collection[str],
    maps: Sequence[Mapping[str, str]],
    loc_names: set[str],
) -> bool | None:
    """Return whether the gold's LOC means all locations; None if the gold has no location, or the component at most one type.

    labels: Labels of the component. counts: Accepted gold label -> frequency. gold_names: These and the rejected ones.
    maps: Each maps labels to other names. loc_names: Names that may mean LOC.
    """
    if len({LOC, *_FINE_LOCATIONS}.intersection(labels)) < 2:
        return None
    fine_names = {*_FINE_LOCATIONS, *(names[label] for names in maps for label in _FINE_LOCATIONS if names.get(label))}
    fine_names -= loc_names  # the names of GPE and FAC that cannot mean LOC
    # Rejected labels decide only if no label of a location was accepted.
    has_accepted_location = any(name in counts for name in loc_names | fine_names)
    names = counts.keys() if has_accepted_location else gold_names
    if any(name in names for name in fine_names):
        return False  # if a name of GPE or FAC occurs, LOC is LOC
    return True if any(name in names for name in loc_names) else None  # None: the gold has no locations


def _locations_meant(
    name: str, labels: Sequence[str], table: Mapping[str, str], loc_names: set[str], is_coarse: bool
) -> list[str]:
    """Return the labels of a component (of LOC, GPE, FAC, in this order) that the gold label `name`, one of loc_names, means.

    table: Label -> its name in the pipe. loc_names: Names that may mean LOC. is_coarse: Whether LOC means all locations.
    """
    locations = [label for label in (LOC, *_FINE_LOCATIONS) if label in labels]
    # Locations to which the pipe gives another name than LOC's are left out. But the gold label LOC always means the label LOC.
    locations = [label for label in locations if table.get(label, LOC) in loc_names or label == name == LOC]
    if is_coarse:
        return locations
    # The name means a single label: LOC, or else the first of GPE and FAC to which the pipe itself gives a name of LOC.
    return [label for label in locations if label == LOC or label in table][:1]


def _labels_meant(name: str, labels: Sequence[str], maps: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the labels of a component that the gold label `name` means, by the first rule that finds any; [] if none does."""
    table, *extra_maps = maps  # label -> its name in the calib pipe; then maps from labels to other names
    candidates = [  # one list of labels for each rule
        [label for label in labels if table.get(label) == name],
        [label for label in labels if label == name],
        *([label for label in labels if names.get(label) == name] for names in extra_maps),
        [label for label in labels if label == COARSE.get(name)],  # a coarse label, if the gold label is fine
    ]
    return next(filter(None, candidates), [])


def coarse_name(label: str) -> str:
    """Return the coarse type (PER, LOC or ORG) of a common entity label such as "Person"; "" for any other label."""
    names = (name for name, synonyms in _COMMON.items() if label.upper() in (name, *synonyms))
    return next((COARSE.get(name, name) for name in names), "")


def span_confusions(
    annotation: Annotation, example: Example, predicted_spans: Iterable[tuple[int, int, str]]
) -> Counter[tuple[str, str]]:
    """Count the gold spans of an example by (label of the first predicted span that overlaps it or "", gold label).

    predicted_spans (Iterable): (start, end, label) of each, in tokens of the predicted Doc.
    """
    alignment, label_at = example.alignment.x2y, dict[int, str]()  # label_at: gold token -> predicted label
    for start, end, label in predicted_spans:
        for token in alignment[start:end].reshape(-1).tolist():
            label_at.setdefault(token, label)
    confusions: Counter[tuple[str, str]] = Counter()
    for span in annotation.spans_on(example.reference):
        labels_on_span = (label_at[token] for token in range(span.start, span.end) if token in label_at)
        confusions[next(labels_on_span, ""), span.label_] += 1
    return confusions


def propose_gold_labels(
    labels: Sequence[str], unknown: Collection[str], confusions: Mapping[tuple[str, str], int]
) -> dict[str, str]:
    """Propose for each label of a component one of the unknown gold labels that it may mean: label -> gold label.

    The proposal is a common synonym, or else the most frequent gold label on the spans of the label, if it is on _MIN_SPANS of
    them or more. Other labels have no proposal. unknown (Collection[str]): Gold labels that the component lacks.
    confusions (Mapping): (predicted label, gold label) -> number of spans.
    """
    proposals: dict[str, str] = {}
    for label in labels:
        span_counts = {name: confusions.get((label, name), 0) for name in unknown}
        synonyms = [name for name in unknown if name.upper() in (label.upper(), *_COMMON.get(label, ()))]
        best = max(synonyms or unknown, key=span_counts.__getitem__, default="")
        highest_count = max((n for (predicted_label, _), n in confusions.items() if predicted_label == label), default=0)
        # Without a synonym: no known gold label may be more frequent on the spans of this label.
        if synonyms or span_counts.get(best, 0) >= max(_MIN_SPANS, highest_count):
            proposals[label] = best
    return proposals


@dataclass(frozen=True, eq=False)
class LabelComparison:
    """How a component's labels are compared with one gold Doc, whose labels are of another scheme.

    scheme (LabelScheme): What gold labels mean. spans (Sequence): (start, end, hash of the component's label) of gold spans.
    """

    scheme: LabelScheme
    spans: Sequence[tuple[int, int, int]]

    def resolve(self, annotation: Annotation, gold: Hashes, example: Example) -> Hashes:
        """Return the label hash to compare each predicted token's label with, shape (n_tokens,): equal if the label is right.

        That is the predicted label if the gold label means the same; 0 (no gold) if the token is outside of gold entities and
        the gold never uses its predicted label; else the gold label. annotation (Annotation): Reads the predicted labels, under
        their names in the pipe. gold (Hashes): Hash of each token's gold label, under its name in the pipe; 0 without gold.
        """
        # The scheme is about the component's own labels, which the `inner` annotation reads if there is a label map.
        doc, unmapped = example.predicted, cast(Any, getattr(annotation, "inner", annotation))
        distinct, first_tokens, inverse = np.unique(unmapped.hashes(doc), return_index=True, return_inverse=True)
        # For each distinct predicted label: hash of the gold label that means it, 0 for none; whether the gold never uses it.
        gold_of_label, is_unused = np.zeros(len(distinct), dtype=np.uint64), np.zeros(len(distinct), dtype=bool)
        for i, (label_hash, token) in enumerate(zip(distinct.tolist(), first_tokens.tolist(), strict=True)):
            label = unmapped.label_at(doc, token) if label_hash else ""
            prefix, name = split_prefix(label) if annotation.kind.has_prefixes else ("", label)
            is_unused[i] = name in self.scheme.unused_labels
            if name in self.scheme.first_of:
                gold_of_label[i] = get_string_id(prefix + self.scheme.name(self.scheme.first_of[name]))
        label_of_token = inverse.reshape(-1)  # index of each token's predicted label in `distinct`
        means_prediction = (gold_of_label[label_of_token] == gold) & (gold != 0)
        has_no_gold = is_unused[label_of_token] & (gold == _OUT)
        translated_gold = np.where(means_prediction, annotation.hashes(doc), gold)
        return np.where(has_no_gold, np.uint64(0), translated_gold)
