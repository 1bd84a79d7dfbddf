"""The base class of sources of parsers and recognizers: of spaCy's, and of ours, which remember probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc

from .source import ComponentSource, overwriting_pipe, reasons_not_to_run

# What users can do if a second pass cannot separate the entities of a component from those of another.
NO_SECOND_PASS = "save the pipeline, and calibrate it from its folder (without --second-pass)"
# Token attributes that embedding layers may read in addition to the word; NORM may differ from the lexeme's ("n't": "not").
_INPUT_ATTRS: list[int | str] = ["NORM", "TAG", "POS", "MORPH", "LEMMA"]


class ParsedDocs(list):
    """The list of parser states that `predict` returns to spaCy. readings (Sequence): The probabilities of each Doc."""

    def __init__(self, states: Sequence[Any], readings: Sequence[Any]):
        super().__init__(states)
        self.readings = readings


class KeptReadings:
    """A store of the probabilities ("readings") that components computed for Docs. It keeps each as long as the Doc lives."""

    def __init__(self) -> None:
        self._by_doc: WeakKeyDictionary[Doc, tuple[str, Any, NDArray[Any]]] = WeakKeyDictionary()

    def keep(self, doc: Doc, component: str, reading: Any) -> None:
        """Store what a component of this name computed for a Doc, with the Doc's words, by which later changes are noticed."""
        self._by_doc[doc] = (component, reading, np.asarray(doc.to_array("ORTH")))

    def __call__(self, doc: Doc, component: str) -> Any:
        """Return the reading of a Doc; None if this component did not run on the Doc last, or the Doc has other words now."""
        name, reading, words = self._by_doc.get(doc, ("", None, None))
        return reading if name == component and words is not None and np.array_equal(words, doc.to_array("ORTH")) else None

    def missing(self, pipe: Any, component: str, docs: Sequence[Doc]) -> list[str]:
        """Return for each Doc in words why it has no reading, "" if it has one. component (str): Its name in the settings."""
        why = f"'{component}' did not run on the Doc in this process, or tokens were merged or split since"
        return ["" if not len(doc) or self(doc, pipe.name) is not None else why for doc in docs]


def clear_copy(doc: Doc, keep_arcs: bool = True) -> Doc:
    """Copy what models read of a Doc, without entities and heads. keep_arcs: Copy sentence starts and arc labels, too."""
    # 1 at a start of a sentence, -1 where none may be, 0 if unknown
    signs = doc.to_array(["SENT_START"]).astype(np.uint64).reshape(-1).view(np.int64)
    starts: list[bool | int | None] = [None if sign == 0 else bool(sign == 1) for sign in signs.tolist()]
    words, spaces = [token.text for token in doc], [bool(token.whitespace_) for token in doc]
    copy = Doc(doc.vocab, words=words, spaces=spaces, sent_starts=starts if keep_arcs else [None] * len(words))
    attrs = [*_INPUT_ATTRS, "DEP"] if keep_arcs else _INPUT_ATTRS
    copy.from_array(attrs, np.asarray(doc.to_array(attrs)))  # type: ignore[arg-type]
    copy.tensor = doc.tensor
    if Doc.has_extension("trf_data"):
        copy._.trf_data = doc._.trf_data
    return copy


class TransitionSource(ComponentSource):
    """Base class of sources of parsers and recognizers. Ours remember their readings; others run again, on copies of Docs.

    remembering_class (type): The component class that remembers readings. memory (KeptReadings): These readings.
    output_name (str), output_attributes (frozenset[str]): What the component sets, in messages and in spaCy's metadata.
    """

    remembering_class: ClassVar[type]
    memory: ClassVar[KeptReadings]
    output_name: ClassVar[str]
    output_attributes: ClassVar[frozenset[str]]

    def has_memory(self, pipe: Any) -> bool:
        return isinstance(pipe, self.remembering_class)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        if self.has_memory(pipe):  # it needs no second pass, so annotations set before it do no harm
            return ""
        return self._describe_earlier_setter(nlp, pipe) or overwriting_pipe(nlp, name, pipe)

    def _describe_earlier_setter(self, nlp: Language, pipe: Any) -> str:
        """Return in words which earlier pipe sets labels that a second pass could not separate from its own, "" if none."""
        for name, earlier_pipe in nlp.pipeline:
            if earlier_pipe is pipe:
                break
            # A ruler sets entities by a setting; other pipes declare the attributes that they assign.
            is_ruler = "doc.ents" in self.output_attributes and getattr(earlier_pipe, "annotate_ents", False)
            if is_ruler or self.output_attributes & set(nlp.get_pipe_meta(name).assigns):
                why = f"'{name}' sets {self.output_name} before '{self.component}'"
                return f"{why}, and a second pass cannot tell them from its own; {NO_SECOND_PASS}"
        return ""

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return self.memory.missing(pipe, self.component, docs) if self.has_memory(pipe) else reasons_not_to_run(pipe, docs)

    def readings(self, pipe: Any, docs: Sequence[Doc]) -> list[Any]:
        """Return the probabilities ("reading") of each Doc: remembered ones, or else those of a second pass (`read_again`)."""
        return [self.memory(doc, pipe.name) for doc in docs] if self.has_memory(pipe) else self.read_again(pipe, docs)

    @abstractmethod
    def read_again(self, pipe: Any, docs: Sequence[Doc]) -> list[Any]:
        """Return the readings of a second pass over copies of the Docs."""
