"""The targets of sequence models: tags, entities as BILUO, or a user's own attribute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc, Token
from spacy.training import Example, biluo_tags_to_spans, iob_to_biluo

from .messages import calib_error

ENTITIES = "ents"
_MISSING = "-"


class Target(ABC):
    """One kind of label of tokens. assigns (list[str]), score_weights (dict): As a spaCy factory declares them."""

    assigns: list[str]
    score_weights: dict[str, float | None]

    @abstractmethod
    def gold(self, example: Example) -> list[str | None]:
        """Return the gold label of each predicted token, None for none."""

    @abstractmethod
    def labels(self, example: Example) -> Iterable[str]:
        """Return the labels that the gold Doc uses."""

    def is_label(self, label: str) -> bool:
        """Return whether tokens can have this label."""
        return bool(label)

    @abstractmethod
    def write(self, doc: Doc, labels: Sequence[str], overwrite: bool) -> None:
        """Write the labels. overwrite (bool): Also over existing ones."""

    @abstractmethod
    def score(self, examples: Iterable[Example]) -> dict[str, Any]:
        """Score the predicted Docs by spaCy's scorers."""


class Tags(Target):
    assigns = ["token.tag"]
    score_weights = {"tag_acc": 1.0}

    def gold(self, example: Example) -> list[str | None]:
        return [tag or None for tag in example.get_aligned("TAG", as_string=True)]

    def labels(self, example: Example) -> Iterable[str]:
        return {token.tag_ for token in example.reference if token.tag_}

    def write(self, doc: Doc, labels: Sequence[str], overwrite: bool) -> None:
        for token, label in zip(doc, labels, strict=True):
            if overwrite or not token.tag:
                token.tag_ = label

    def score(self, examples: Iterable[Example]) -> dict[str, Any]:
        return Scorer.score_token_attr(examples, "tag")


class Entities(Target):
    """doc.ents, as BILUO tags; tags that do not fit together are read leniently, as IOB."""

    assigns = ["doc.ents", "token.ent_iob", "token.ent_type"]
    score_weights = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}

    def gold(self, example: Example) -> list[str | None]:
        if not example.reference.has_annotation("ENT_IOB"):
            return [None] * len(example.predicted)
        return [None if tag is None or tag == _MISSING else tag for tag in example.get_aligned_ner()]

    def labels(self, example: Example) -> Iterable[str]:
        kinds = {span.label_ for span in example.reference.ents}
        return {"O", *(f"{letter}-{kind}" for kind in kinds for letter in "BILU")} if kinds else ()

    def is_label(self, label: str) -> bool:
        return label == "O" or (label[:1] in set("BILU") and label[1:2] == "-" and len(label) > 2)

    def write(self, doc: Doc, labels: Sequence[str], overwrite: bool) -> None:
        if overwrite or not doc.ents:
            doc.set_ents(biluo_tags_to_spans(doc, _repair_tags(labels)), default="outside")

    def score(self, examples: Iterable[Example]) -> dict[str, Any]:
        return get_ner_prf(examples)


class Extension(Target):
    """Labels in the extension attribute Token._.name, as text."""

    def __init__(self, name: str):
        if not Token.has_extension(name):
            raise calib_error("C324", name=name)
        self.name = name
        self.assigns, self.score_weights = [f"token._.{name}"], {f"{name}_acc": 1.0}

    def gold(self, example: Example) -> list[str | None]:
        labels = [token._.get(self.name) or None for token in example.reference]
        label_sets = ({labels[int(i)] for i in example.alignment.x2y[token.i]} for token in example.predicted)
        return [label_set.pop() if len(label_set) == 1 else None for label_set in label_sets]

    def labels(self, example: Example) -> Iterable[str]:
        return {value for token in example.reference if (value := token._.get(self.name))}

    def write(self, doc: Doc, labels: Sequence[str], overwrite: bool) -> None:
        for token, label in zip(doc, labels, strict=True):
            if overwrite or not token._.get(self.name):
                token._.set(self.name, label)

    def score(self, examples: Iterable[Example]) -> dict[str, Any]:
        def value(token: Token, attr: str) -> int:
            return token.vocab.strings.add(token._.get(attr) or "")

        return Scorer.score_token_attr(examples, self.name, getter=value, missing_values={0})


def get_target(name: str) -> Target:
    """Return the target "tag", "ents", or "_.name" for an extension of Token. RAISES C001: another. C324: no such extension."""
    if name == "tag":
        return Tags()
    if name == ENTITIES:
        return Entities()
    if name.startswith("_."):
        return Extension(name[2:])
    raise calib_error(
        "C001", name="target", wanted="'tag', 'ents', or '_.' and the name of an extension of Token", given=repr(name)
    )


def _repair_tags(labels: Sequence[str]) -> list[str]:
    """Return BILUO tags in which each I and L continues the entity before it."""
    iob: list[str] = []
    for label in labels:
        letter, _, kind = label.partition("-")
        goes_on = letter in "IL" and bool(iob) and iob[-1].partition("-")[2] == kind and kind != ""
        iob.append("O" if letter == "O" else f"{'I' if goes_on else 'B'}-{kind}")
    return iob_to_biluo(iob)


def biluo_transitions(labels: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for BILUO tags which may follow which (rows: the previous), (K, K); which may begin; which may end, (K,)."""
    letters, kinds = np.array([label.partition("-")[::2] for label in labels], dtype=object).reshape(-1, 2).T
    open_after, open_before = np.isin(letters, ["B", "I"]), np.isin(letters, ["I", "L"])
    follows = open_after[:, None] == open_before
    follows &= ~open_after[:, None] | (kinds[:, None] == kinds)
    return follows, ~open_before, ~open_after
