"""Whether there is anything to judge: scores on the documents, and gold whose labels the component knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import calib_error
from ._common import shorten

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example

    from ..component import Calibrator
    from ..scored import ScoredCorpus

_WIDTH = 90


def why_silent(nlp: Language, pipe: Calibrator, docs: Iterable[Doc]) -> str:
    """Why a pipe gave none of these Docs a score, as far as the first one that it ought to have read tells."""
    from ..layers import get_layer

    layer = get_layer(pipe.fit_info["layer"])
    source = pipe.source_pipe()
    doc = next((doc for doc in docs if len(doc) > layer.first), None)
    if doc is None:
        return "they hold no tokens that it could score"
    found = pipe.source.obstacle(nlp, pipe.name, source) or pipe.source.missing(source, [doc])[0]
    return found or f"no token carries a {layer.name} annotation"


def check_scored(nlp: Language, pipe: Calibrator, done: Sequence[Example]) -> None:
    """RAISES C075: the pipe has written nothing on any of the predicted Docs."""
    from ..attributes import doc_view

    docs = [example.predicted for example in done]
    if not any(doc_view(doc, pipe.attr) is not None for doc in docs):
        raise calib_error("C075", name=pipe.name, n_docs=len(docs), why=why_silent(nlp, pipe, docs))


def check_gold_of_examples(pipe: Calibrator, done: Iterable[Example]) -> None:
    """RAISES C151: see `check_gold`."""
    from ..layers import get_layer

    check_gold(pipe, get_layer(pipe.fit_info["layer"]).count(example.reference for example in done))


def check_gold_of_corpus(pipe: Calibrator, corpus: ScoredCorpus) -> None:
    """RAISES C151: see `check_gold`."""
    check_gold(pipe, {corpus.names[place] for place in set(corpus.gold[corpus.gold >= 0].tolist())})


def check_gold(pipe: Calibrator, gold: Iterable[str]) -> None:
    """Whatever is judged on gold asks this. gold (Iterable[str]): Its labels; none say nothing.

    RAISES C151: the component knows none of them.
    """
    names: list[Any] = sorted(gold)
    labels = pipe.source_labels()
    # Edit trees do not name the lemma that they give.
    if names and pipe.fit_info["layer"] != "lemma" and set(labels).isdisjoint(names):
        shown = [shorten(", ".join(of), _WIDTH) for of in (names, labels)]
        raise calib_error("C151", component=pipe.source.component or "the source", gold=shown[0], known=shown[1])
