"""The properties of each kind of label.

A new kind also needs a subclass of Annotation with this `kind`, and an entry in `annotations/__init__.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..pairs.documents import DOCUMENT, TOKEN

# Keys of span groups on gold Docs with rejected answers, by the component's labels: spans, labels of tokens, categories (of the
# whole Doc), identities of entities. If a Doc has such a group, even an empty one, only accepted and rejected labels are known.
REJECTED = "calib_rejected"
REJECTED_TOKENS, REJECTED_CATS, REJECTED_LINKS = (f"{REJECTED}:{unit_name}" for unit_name in ("token", "document", "link"))


@dataclass(frozen=True)
class Kind:
    """What all annotations of one kind have in common.

    of_documents: A document has a label, not a token. of_entities: The spans are the entities of a Doc. of_links: A label
    belongs to the first token of an entity. of_arcs: Labels are dependency arcs: the head must be right as well as the label;
    spans are then sentences, and commands show tokens by default. overlapping: A unit may have several gold labels. any_label:
    Only the head is compared; the label may differ. has_types: Labels are types of spans, "O" outside. has_prefixes: Labels are
    BILUO tags. first_unit: The first unit of a Doc that may have a label. no_label_names: What gold has in place of a label for
    units without one. label_words, span_words: Names of a label and of a span, with plurals. span_event: When a span is right.
    Text for users; if set, the Annotation defines `evaluate_spans`, if "", a setting of the pipe decides. accuracy_name: Name
    of the share right. rejected_key: Key of the span group with rejected labels.
    """

    of_documents: bool = False
    of_entities: bool = False
    of_links: bool = False
    of_arcs: bool = False
    overlapping: bool = False
    any_label: bool = False
    has_types: bool = False
    has_prefixes: bool = False
    first_unit: int = 0
    no_label_names: tuple[str, ...] = ()
    label_words: tuple[str, str] = ("tag", "tags")
    span_words: tuple[str, str] = ("entity", "entities")
    span_event: str = ""
    accuracy_name: str = "accuracy"
    rejected_key: str = REJECTED_TOKENS

    @property
    def unit(self) -> str:
        """What has a label: "token" or "document"."""
        return DOCUMENT if self.of_documents else TOKEN


# Kind, and an example of a component with such labels.
ATTRIBUTE = Kind()  # tags of a tagger
SENT = Kind(first_unit=1)  # sentence starts of a senter; the first token always is one
ENTITIES = Kind(of_entities=True, has_types=True, rejected_key=REJECTED)  # entities of an ner
SPANS = Kind(overlapping=True, has_types=True, rejected_key=REJECTED)  # span groups of a spancat
# Identities of entities, of an entity_linker.
LINKS = Kind(of_links=True, span_event="link", accuracy_name="share of right links", rejected_key=REJECTED_LINKS)
ARCS = Kind(  # head and label of each token, of a parser
    of_arcs=True,
    span_words=("sentence", "sentences"),
    span_event="all heads and labels right",
    accuracy_name="LAS with punctuation",
)
CATEGORIES = Kind(of_documents=True, label_words=("category", "categories"), rejected_key=REJECTED_CATS)  # of a textcat
# Variants
BILUO = replace(ENTITIES, has_prefixes=True)  # BILUO tags of an ner
HEADS = replace(ARCS, any_label=True, span_event="all heads right", accuracy_name="UAS with punctuation")  # of a parser
MULTI_CATEGORIES = replace(CATEGORIES, overlapping=True, no_label_names=("(none)",))  # of a textcat_multilabel
