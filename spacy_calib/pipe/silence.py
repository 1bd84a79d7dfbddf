"""Finds out why a calib pipe scores nothing: its component gives no probabilities, or the texts have nothing to score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from spacy.tokens import Doc
from spacy.training import Example

from ..doc.view import doc_view
from ..errors import CalibError, calib_error

if TYPE_CHECKING:
    from .component import Calibrator


def why_silent(pipe: Calibrator, docs: Iterable[Doc]) -> str:
    """Return why a pipe scored none of these Docs, by the first one with units to score; "" if no reason is found."""
    annotation, source = pipe.annotation, pipe.lookup.component()
    doc = next((doc for doc in docs if annotation.has_units(doc)), None)
    if doc is None:
        return f"they contain no {annotation.kind.unit}s that it could score"
    obstacle = pipe.lookup.obstacle(source) or pipe.source.missing(source, [doc])[0]
    no_annotation = "" if annotation.kind.of_links else f"no {annotation.kind.unit} has a {annotation.gold.name} annotation"
    return obstacle or no_annotation


def no_scores_error(pipe: Calibrator, n_docs: int, why: str) -> CalibError:
    """Build the error for a pipe that scored none of n_docs Docs: C075 with the reason `why`, C745 if that is ""."""
    if not why:
        return calib_error("C745", name=pipe.name, n_docs=n_docs)
    no_unit = "none" if pipe.annotation.kind.of_documents else "no token"
    return calib_error("C075", name=pipe.name, none=no_unit, n_docs=n_docs, why=why)


class SilenceCheck:
    """Finds out why a pipe scores nothing while a stream of Docs passes through `watch`, as the Docs are not kept."""

    def __init__(self, pipe: Calibrator):
        self._pipe, self._annotation = pipe, pipe.annotation
        self._why: str | None = None
        self.n_docs = 0

    def watch(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples unchanged, and find the reason on the first predicted Doc with units to score."""
        for example in examples:
            self.n_docs += 1
            # The reason is found out now, since the Doc is freed after it has passed; one Doc is enough.
            if self._why is None and self._annotation.has_units(example.predicted):
                self._why = why_silent(self._pipe, [example.predicted])
            yield example

    def error(self) -> CalibError:
        """Build C075 or C745, for a pipe that scored none of the Docs that passed."""
        why = why_silent(self._pipe, ()) if self._why is None else self._why
        return no_scores_error(self._pipe, self.n_docs, why)


def check_scored(pipe: Calibrator, examples: Sequence[Example]) -> None:
    """Check that a pipe has written on one of the predicted Docs. RAISES C075, C745: it has not."""
    docs = [example.predicted for example in examples]
    if not any(doc_view(doc, pipe.attr) is not None for doc in docs):
        raise no_scores_error(pipe, len(docs), why_silent(pipe, docs))
