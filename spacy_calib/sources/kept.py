"""Parsers and recognizers of ours keep what they found in each Doc; what their sources share with those of spaCy's own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.ml.parser_model import precompute_hiddens
from spacy.tokens import Doc
from thinc.api import CupyOps

from .base import ComponentSource, missing_input, overwriting_pipe


class ParsedDocs(list):
    """The states that `predict` gives, as spaCy wants them. readings (Sequence): What the component keeps of each Doc."""

    def __init__(self, states: Sequence[Any], readings: Sequence[Any]):
        super().__init__(states)
        self.readings = readings


def get_state2vec(step_model: Any, docs: Sequence[Doc], lower: Any) -> Any:
    """The layer that turns state features into vectors as spaCy's greedy parser does, on the CPU.

    step_model (ParserStepModel): Of the Docs. lower (Model): The layer of the component's model that state features pass first.
    """
    state2vec = step_model.state2vec
    if state2vec.get_dim("nP") == 1:
        # spaCy's greedy parser leaves out the ReLU that its step model has where there is one maxout piece.
        state2vec = precompute_hiddens(len(docs), step_model.tokvecs, lower, activation="maxout")
    if isinstance(state2vec.ops, CupyOps):
        # They only take the mask for a backward pass, which would be sent to the GPU at each step.
        state2vec.ops = state2vec.numpy_ops
    return state2vec


class KeptReadings:
    """What components found in Docs, for as long as each Doc lives: nothing of it is saved with the Doc."""

    def __init__(self) -> None:
        self._by_doc: WeakKeyDictionary[Doc, tuple[str, Any, NDArray[Any]]] = WeakKeyDictionary()

    def keep(self, doc: Doc, component: str, reading: Any) -> None:
        self._by_doc[doc] = (component, reading, np.asarray(doc.to_array("ORTH")))

    def __call__(self, doc: Doc, component: str) -> Any:
        """The reading; None if the component of this name did not run on the Doc, or the Doc was re-tokenized since."""
        name, reading, words = self._by_doc.get(doc, ("", None, None))
        return reading if name == component and words is not None and np.array_equal(words, doc.to_array("ORTH")) else None

    def missing(self, pipe: Any, component: str, docs: Sequence[Doc]) -> list[str]:
        """Why there is nothing for each Doc, "" if there is. component (str): The pipe's name in the settings."""
        why = f"'{component}' did not run on the Doc in this process, or tokens were merged or split since"
        return ["" if not len(doc) or self(doc, pipe.name) is not None else why for doc in docs]


# What embedding layers may read besides the word: of the token, not of its lexeme ("n't" has the norm "not").
_READ: list[int | str] = ["NORM", "TAG", "POS", "MORPH", "LEMMA"]


def clear_copy(doc: Doc, parsed: bool = True) -> Doc:
    """The same words with what a component's model reads (token vectors, transformer data), but no entities and no heads.

    parsed (bool): Whether sentence starts and the labels of arcs go along.
    """
    columns = doc.to_array(["SENT_START"]).astype(np.uint64).reshape(-1).view(np.int64)
    starts: list[bool | int | None] = [None if sign == 0 or not parsed else bool(sign == 1) for sign in columns.tolist()]
    copy = Doc(
        doc.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc], sent_starts=starts
    )
    read = [*_READ, "DEP"] if parsed else _READ
    copy.from_array(read, np.asarray(doc.to_array(read)))  # type: ignore[arg-type]
    copy.tensor = doc.tensor
    if Doc.has_extension("trf_data"):
        copy._.trf_data = doc._.trf_data
    return copy


class TransitionSource(ComponentSource):
    """Reads components that decide by transitions, by what the Docs' own run kept or by a second pass.

    keeping (type): The class whose components keep their readings, in kept (KeptReadings). sets (str), attributes
    (frozenset[str]): What such components set on a Doc, in words, and as spaCy calls it.
    """

    keeping: ClassVar[type]
    kept: ClassVar[KeptReadings]
    sets: ClassVar[str]
    attributes: ClassVar[frozenset[str]]

    def keeps(self, pipe: Any) -> bool:
        return isinstance(pipe, self.keeping)

    def obstacle(self, nlp: Language, name: str, pipe: Any) -> str:
        if self.keeps(pipe):
            return ""
        return self._set_before(nlp, pipe) or overwriting_pipe(nlp, name, pipe)

    def _set_before(self, nlp: Language, pipe: Any) -> str:
        """Why a second pass would find annotations that another component has set before it; "" if there are none."""
        for name, earlier_pipe in nlp.pipeline:
            if earlier_pipe is pipe:
                break
            is_ruler = "doc.ents" in self.attributes and getattr(earlier_pipe, "annotate_ents", False)
            if is_ruler or self.attributes & set(nlp.get_pipe_meta(name).assigns):
                return (
                    f"'{name}' sets {self.sets} before '{self.component}', and a second pass cannot tell them from its own; "
                    "fit the pipeline again without --second-pass"
                )
        return ""

    def missing(self, pipe: Any, docs: Sequence[Doc]) -> list[str]:
        return self.kept.missing(pipe, self.component, docs) if self.keeps(pipe) else missing_input(pipe, docs)

    def readings(self, pipe: Any, docs: Sequence[Doc]) -> list[Any]:
        """What was found in each Doc. RAISES: see `read_again`."""
        return [self.kept(doc, pipe.name) for doc in docs] if self.keeps(pipe) else self.read_again(pipe, docs)

    @abstractmethod
    def read_again(self, pipe: Any, docs: Sequence[Doc]) -> list[Any]:
        """The same by a second pass, which runs on copies of the Docs."""
