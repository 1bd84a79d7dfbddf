"""Counts the gold that a fit or an evaluation leaves out, and reports the counts in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spacy.training import Example

from ..annotations import Annotation, Kind, count_misaligned, has_gold, plain_name
from ..annotations.annotation import get_label_comparison
from ..annotations.label_schemes import LabelScheme, propose_gold_labels, span_confusions
from ..pairs.label_map import shorten_list
from .contradictions import CATS, NER, GoldConflicts

# Name of an annotation -> (its layer in GoldConflicts, noun for what that layer counts).
_CONFLICT_LAYERS = {
    **dict.fromkeys(("ner", "biluo", "ent_type"), (NER, "entities")),
    **{name.lower(): (name, "tokens") for name in ("TAG", "POS", "LEMMA", "MORPH", "DEP")},
    **dict.fromkeys(("head", "arc"), ("DEP", "tokens")),
    **dict.fromkeys(("cats", "cats:multi"), (CATS, "categories")),
    "sent": ("SENT_START", "tokens"),
    "link": ("link", "entity links"),
}


@dataclass(frozen=True)
class DroppedGold:
    """Counts of gold and predictions that a fit or an evaluation leaves out.

    layer (str), kind (Kind): Name and kind of the annotation. documents (int): Number of gold Docs. without_gold (int): Number
    of gold Docs without this annotation; 0 if none has it. tokens (int): Number of predicted tokens in Docs with gold. left_out
    (int): Number of these that align with no single gold token. unused_types (Mapping): Type that the gold never uses -> number
    of predicted spans. conflicts (GoldConflicts): Differences between several annotations of a text.
    """

    layer: str
    kind: Kind
    documents: int
    without_gold: int
    tokens: int
    left_out: int
    unused_types: Mapping[str, int] = field(default_factory=dict)
    conflicts: GoldConflicts = field(default_factory=GoldConflicts)

    @classmethod
    def from_examples(cls, annotation: Annotation, examples: Iterable[Example]) -> DroppedGold:
        """Count what is left out of examples. annotation (Annotation): The annotation of the predicted Docs."""
        gold, n_documents, conflicts = annotation.gold, 0, GoldConflicts()
        with_gold: list[Example] = []
        compared: list[tuple[LabelScheme, Example]] = []  # examples whose gold has another label scheme, and this scheme
        for example in examples:
            doc = example.reference
            conflicts.add(doc)
            if not annotation.has_units(doc) or doc.text.isspace():
                continue
            n_documents += 1
            if (comparison := get_label_comparison(doc, annotation.name)) is not None:
                compared.append((comparison.scheme, example))
            if has_gold(gold, doc):
                with_gold.append(example)
        token_counts = count_misaligned(gold, with_gold) if not annotation.kind.of_documents else {"tokens": 0, "left_out": 0}
        # A Doc without links may have no entities, which is no lack of gold.
        return cls(
            plain_name(annotation.name),
            annotation.kind,
            n_documents,
            without_gold=0 if annotation.kind.of_links or not with_gold else n_documents - len(with_gold),
            **token_counts,
            unused_types=_count_unused_types(annotation, compared),
            conflicts=conflicts,
        )

    def sentences(self) -> list[str]:
        """Return a sentence for each kind of gold that is left out."""
        sentences = self._conflict_sentences()
        if self.without_gold:
            advice = ": if a text has none of the categories, give each of them the value 0 there"
            sentences.append(
                f"{self.without_gold:,} of {self.documents:,} documents have no gold {self.layer} annotation and take no "
                f"part{advice if self.kind.of_documents else ''}"
            )
        if self.left_out:
            sentences.append(
                f"{self.left_out:,} of {self.tokens:,} tokens ({100 * self.left_out / self.tokens:.1f} %) are left out, as "
                "they align with no single gold token: the figures are of the others alone, and may flatter; --gold-preproc "
                "takes the tokens of the gold"
            )
        if self.unused_types:
            names = shorten_list([f"{label} {n:,}" for label, n in Counter(self.unused_types).most_common()])
            sentences.append(
                f"{sum(self.unused_types.values()):,} predictions have a type that the gold never uses ({names}) and are not "
                "evaluated"
            )
        return sentences

    def _conflict_sentences(self) -> list[str]:
        """Return sentences about texts with several annotations, and about entities that overlap."""
        sentences, conflicts = [], self.conflicts
        conflict_layer, units = _CONFLICT_LAYERS.get(self.layer, (self.layer, "labels"))
        n_compared, n_differing = conflicts.compared[conflict_layer], conflicts.differing[conflict_layer]
        if conflicts.copies or n_compared:
            repeats = f"{conflicts.copies:,} {'text was' if conflicts.copies == 1 else 'texts were'} given again"
            share = f"{100 * n_differing / max(1, n_compared):.1f} %"
            disagreement = f"; annotators differ on {n_differing:,} of {n_compared:,} {units} ({share})" if n_compared else ""
            unknown = ", which are unknown and take no part" if n_differing else ""
            sentences.append(
                f"{repeats} (in several files, by several people or in several records): gold that agrees counts "
                f"once{disagreement}{unknown}"
            )
        if conflicts.overlapping and conflict_layer == NER:
            sentences.append(
                f"{conflicts.overlapping:,} gold entities have a second label or overlap another one, so that none can be "
                "taken: they are unknown and take no part"
            )
        return sentences


def _count_unused_types(annotation: Annotation, compared: Sequence[tuple[LabelScheme, Example]]) -> Counter[str]:
    """Count predicted spans by types that the gold never uses. compared (Sequence): (label scheme of the gold, example)."""
    unused_types: Counter[str] = Counter()
    confusions: Counter[tuple[str, str]] = Counter()
    for scheme, example in compared:
        spans = annotation.spans_on(example.predicted)
        unused_types.update(span.label_ for span in spans if span.label_ in scheme.unused_labels)
        confusions += span_confusions(annotation, example, [(span.start, span.end, span.label_) for span in spans])
    if compared:
        scheme = compared[-1][0]  # all of the gold has one scheme
        # A type that the gold probably uses under another name is reported elsewhere.
        for label in propose_gold_labels(scheme.unused_labels, scheme.unknown_in(confusions), confusions):
            unused_types.pop(label, None)
    return unused_types
