"""Which labels of a component a gold label stands for, whatever names and whatever scheme the gold has.

OntoNotes distinguishes three kinds of places (GPE, FAC, LOC); coarse schemes call them all LOC. The name alone does not decide, the whole gold does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from ..types import OUTSIDE
from .base import GOLD_LABELS

if TYPE_CHECKING:
    from .base import Annotation, Hashes

# Label of OntoNotes -> its name in the coarse scheme.
COARSE = {"PERSON": "PER", "GPE": "LOC", "FAC": "LOC"}
LOC, _FINE_PLACES = "LOC", ("GPE", "FAC")
# Other common names, in capitals. They are proposed, never assumed.
_COMMON = {
    "PERSON": ("PER", "PERS", "PEOPLE"), "PER": ("PERSON", "PERS", "PEOPLE"), "ORG": ("ORGANIZATION", "ORGANISATION"),
    "GPE": ("LOC", "LOCATION", "PLACE"), "FAC": ("FACILITY", "LOC", "LOCATION", "PLACE"), "LOC": ("LOCATION", "PLACE", "GPE"),
}  # fmt: skip
# A pair stands in a proposed map if so many spans show it.
_SEVERAL = 3
_OUT = np.uint64(get_string_id(OUTSIDE))


@dataclass(frozen=True)
class LabelScheme:
    """How the gold names the labels of a component.

    table (Mapping): Label of the component -> its name in the pipe, "" for none; labels without entry keep their name.
    first_of (Mapping): Label -> the first of the labels that the gold does not distinguish from it.
    gold (Mapping): Gold label -> the first label that it stands for. unused (tuple): Labels that the gold never uses.
    coarse (bool | None): Whether LOC stands for all places; None where nothing depends on it.
    """

    table: Mapping[str, str]
    first_of: Mapping[str, str]
    gold: Mapping[str, str]
    unused: tuple[str, ...]
    coarse: bool | None

    def name(self, label: str) -> str:
        """The name of a label in the pipe, "" for none."""
        return self.table.get(label, label)

    @property
    def renamed(self) -> dict[str, str]:
        """Gold label -> its name in the pipe, where it is another one; "" for none."""
        return {given: self.name(label) for given, label in self.gold.items() if self.name(label) != given}

    def unknown_in(self, confusions: Iterable[tuple[str, str]]) -> list[str]:
        """The labels of gold spans that stand for no label of the component. confusions (Iterable): See `span_confusions`."""
        known_names = {*self.gold, *map(self.name, self.gold.values())}
        return list(dict.fromkeys(name for _, name in confusions if name not in known_names))

    @property
    def is_plain(self) -> bool:
        """Whether the pipe's names alone tell which labels are right: they merge what the gold merges, and nothing else."""
        judged = [label for label in self.first_of if self.name(label)]
        firsts = dict(zip(map(self.name, reversed(judged)), reversed(judged), strict=True))
        same = all(self.first_of[a] == self.first_of[firsts[self.name(a)]] for a in judged)
        n_groups = len({self.first_of[label] for label in judged})
        return same and n_groups == len(firsts) and not self.unused

    @property
    def sentence(self) -> str:
        """How LOC was read; "" where nothing depends on it."""
        if self.coarse is None:
            return ""
        return (
            "The gold has no GPE and no FAC: read as a coarse scheme, whose LOC stands for GPE, LOC and FAC"
            if self.coarse
            else "The gold has GPE or FAC: read as OntoNotes' scheme, where LOC is LOC"
        )


def read_scheme(
    labels: Sequence[str],
    counts: Mapping[str, int],
    table: Mapping[str, str],
    others: Iterable[Mapping[str, str]] = (),
    given: Mapping[str, str] | None = None,
    rejected: Iterable[str] = (),
) -> LabelScheme:
    """Find out what the labels of a gold stand for.

    labels (Sequence[str]): Of the component. counts (Mapping): Gold label -> its frequency in all of the gold. rejected (Iterable): Labels
        that people rejected: those that a queue showed, which decide how LOC is read only where no label of a place was accepted.
    table (Mapping): Label of the component -> its name in the pipe. others (Iterable): Further names of labels, as a card's.
    given (Mapping | None): Label of the component -> its name in this gold, if the user says so.
    """
    maps, coarse, rejected = [table, *others, COARSE], None, list(rejected)
    if given is None and len({LOC, *_FINE_PLACES}.intersection(labels)) > 1:
        loc_names = {LOC, *(names[LOC] for names in maps if LOC in names)}
        fine_names = {label: {label, *(names.get(label, "") for names in maps)} - {*loc_names, ""} for label in _FINE_PLACES}
        places = loc_names.union(*fine_names.values())
        shown = rejected if places.isdisjoint(counts) else counts
        is_fine = any(not names.isdisjoint(shown) for names in fine_names.values())
        coarse = not is_fine if is_fine or not loc_names.isdisjoint(shown) else None
    first_of: dict[str, str] = {}
    gold: dict[str, str] = {}
    for name in dict.fromkeys([*counts, *rejected]):
        if given is not None:
            owners = [label for label in labels if given.get(label, label) == name]
        elif coarse is not None and name in loc_names:
            own_places = [label for label in (LOC, *_FINE_PLACES) if label in labels]
            owners = [label for label in own_places if table.get(label, name) in loc_names or label == LOC == name]
            owners = owners if coarse else owners[:1]
        else:
            owners = _owners(name, labels, maps)
        if owners:
            first = next((first_of[label] for label in owners if label in first_of), owners[0])
            first_of |= {label: first_of.get(label, first) for label in owners}
            gold[name] = first
    unused = tuple(label for label in labels if label not in first_of and table.get(label, label)) if gold else ()
    return LabelScheme(table, first_of, gold, unused, coarse)


def _owners(name: str, labels: Sequence[str], maps: Sequence[Mapping[str, str]]) -> list[str]:
    """The labels with this name: in the pipe, else in the component, else elsewhere."""
    table, *others = maps
    candidates = [
        [label for label in labels if table.get(label) == name],
        [label for label in labels if label == name],
        *([label for label in labels if names.get(label) == name] for names in others),
        [label for label in labels if label == COARSE.get(name)],
    ]
    return next(filter(None, candidates), [])


def coarse_name(label: str) -> str:
    """The coarse type, PER, LOC or ORG, that a label is a common name of; "" for any other label."""
    return next((COARSE.get(name, name) for name, others in _COMMON.items() if label.upper() in (name, *others)), "")


def has_types(annotation: Annotation) -> bool:
    """Whether an annotation is of spans with labels, as entities are."""
    return annotation.of_entities or annotation.name.startswith("spans:")


def span_confusions(
    annotation: Annotation, example: Example, predicted: Iterable[tuple[int, int, str]]
) -> Counter[tuple[str, str]]:
    """Count (label of the first predicted span that overlaps it, "" for none; gold label) of the gold spans of an example.

    predicted (Iterable): (start, end, label), in tokens of the predicted Doc.
    """
    alignment, covered = example.alignment.x2y, dict[int, str]()
    for start, end, label in predicted:
        for token in alignment[start:end].reshape(-1).tolist():
            covered.setdefault(token, label)
    labels = (
        (next((covered[token] for token in range(span.start, span.end) if token in covered), ""), span.label_)
        for span in annotation.spans_on(example.reference)
    )
    return Counter(labels)


def likely_names(labels: Sequence[str], unknown: Collection[str], confusions: Mapping[tuple[str, str], int]) -> dict[str, str]:
    """Label of a component -> the unknown gold label that it probably stands for: a common name of it, else what several spans show.

    confusions (Mapping): (predicted label, gold label) -> spans.
    """
    pairs: dict[str, str] = {}
    for label in labels:
        common = [name for name in unknown if name.upper() in (label.upper(), *_COMMON.get(label, ()))]
        shown = {name: confusions.get((label, name), 0) for name in unknown}
        best = max(shown, key=lambda name: shown[name], default="")
        if common:
            pairs[label] = max(common, key=lambda name: shown[name])
        elif shown.get(best, 0) >= _SEVERAL and shown[best] == max(n for (other, _), n in confusions.items() if other == label):
            pairs[label] = best
    return pairs


@dataclass(frozen=True, eq=False)
class JudgedLabels:
    """How one gold Doc is compared with the labels of a component.

    scheme (LabelScheme): Of all of the gold. spans (frozenset): (start, end, label hash) of its spans, by the component's labels.
    """

    scheme: LabelScheme
    spans: Sequence[tuple[int, int, int]]
    unused: frozenset[int]
    firsts: Mapping[int, int]

    @classmethod
    def from_scheme(cls, scheme: LabelScheme, spans: Sequence[tuple[int, int, int]]) -> JudgedLabels:
        firsts = {get_string_id(label): get_string_id(first) for label, first in scheme.first_of.items()}
        return cls(scheme, spans, frozenset(map(get_string_id, scheme.unused)), firsts)

    def write(self, doc: Doc, annotation_name: str) -> None:
        """Attach this to a gold Doc, for one annotation, see `judged_labels`."""
        doc.user_data[GOLD_LABELS] = {**doc.user_data.get(GOLD_LABELS, {}), annotation_name: self}

    def resolve(self, annotation: Annotation, gold: Hashes, example: Example) -> Hashes:
        """Return the gold of predicted tokens where the scheme of the gold is not that of the pipe.

        A predicted label that the gold does not distinguish from the right one is right; one that it never uses leaves a token outside of entities without gold.
        """
        doc, inner = example.predicted, cast(Any, getattr(annotation, "inner", annotation))
        keys, places, inverse = np.unique(inner.hashes(doc), return_index=True, return_inverse=True)
        expected, is_unused = np.zeros(len(keys), dtype=np.uint64), np.zeros(len(keys), dtype=bool)
        for i, (key, place) in enumerate(zip(keys.tolist(), places.tolist(), strict=True)):
            label = inner.label_at(doc, place) if key else ""
            prefix, name = (label[:2], label[2:]) if inner.prefixed and label[1:2] == "-" else ("", label)
            is_unused[i] = name in self.scheme.unused
            if name in self.scheme.first_of:
                expected[i] = get_string_id(prefix + self.scheme.name(self.scheme.first_of[name]))
        inverse = inverse.reshape(-1)
        is_same = (expected[inverse] == gold) & (gold != 0)
        is_open = is_unused[inverse] & (gold == _OUT)
        return np.where(is_open, np.uint64(0), np.where(is_same, annotation.hashes(doc), gold))
