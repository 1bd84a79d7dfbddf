"""The kinds of labels (tags, entities, arcs, categories ...) and the properties in which they differ.

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
    """The properties that all annotations of one kind have in common.

    of_documents: Labels belong to documents, not to tokens. of_entities: The spans are the entities of a Doc. of_links: Labels
    are identities of entities, each on the entity's first token. of_arcs: Labels are those of dependency arcs, whose heads must
    be right, too; spans are sentences, and commands show tokens by default. overlapping: A unit may have several gold labels.
    any_label: Only heads are compared, so any label is right. has_types: Labels are types of spans, "O" outside. has_prefixes:
    Labels are BILUO tags. first_unit: The first unit of a Doc that may have a label. no_label_names: Names in the gold for "no
    label". label_words, span_words: Words for a label and a span, (singular, plural). span_event: A text for users that says
    when a span is right, as `evaluate_spans` of the Annotation decides; "" if a setting of the pipe decides. accuracy_name:
    Name of the share of right labels. rejected_key: Key of the span group (on gold Docs) of rejected labels.
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
        """The unit that has a label: "token" or "document"."""
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
