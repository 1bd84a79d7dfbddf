"""Finds out why a calib pipe scores nothing: its component gives no probabilities, or the texts have nothing to score."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from spacy.tokens import Doc
from spacy.training import Example

from ..doc.doc_calib import doc_view
from ..errors import CalibError, calib_error

if TYPE_CHECKING:
    from .component import Calibrator


class SilenceCheck:
    """Finds out why a pipe scores nothing. It watches a stream of Docs, since they are not kept to be looked at afterwards."""

    def __init__(self, pipe: Calibrator):
        self._pipe, self._annotation = pipe, pipe.annotation
        self._has_units, self._why = False, ""  # whether a Doc had units to score; why the first one has no scores, or ""
        self.n_docs = 0

    def watch(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples unchanged, and find the reason on the first predicted Doc with units to score."""
        for example in examples:
            self.n_docs += 1
            # The reason is found out now, since the Doc is freed after it has passed; one Doc is enough.
            if not self._has_units and self._annotation.has_units(example.predicted):
                self._has_units, self._why = True, self._why_silent(example.predicted)
            yield example

    def _why_silent(self, doc: Doc) -> str:
        """Return why the pipe scored nothing on a Doc with units to score; "" if no reason is found."""
        lookup, kind = self._pipe.lookup, self._annotation.kind
        component = lookup.component()
        obstacle = lookup.obstacle(component) or self._pipe.source.missing(component, [doc])[0]
        # Entities without a link are no fault, tokens without a label are one.
        no_annotation = "" if kind.of_links else f"no {kind.unit} has a {self._annotation.gold.name} annotation"
        return obstacle or no_annotation

    def error(self) -> CalibError:
        """Build the error for a pipe that scored none of the Docs that passed: C075 with the reason, C745 without one."""
        name, kind = self._pipe.name, self._annotation.kind
        why = self._why if self._has_units else f"they contain no {kind.unit}s that it could score"
        if not why:
            return calib_error("C745", name=name, n_docs=self.n_docs)
        no_unit = "none" if kind.of_documents else "no token"
        return calib_error("C075", name=name, none=no_unit, n_docs=self.n_docs, why=why)


def check_scored(pipe: Calibrator, examples: Sequence[Example]) -> None:
    """Check that a pipe has written on one of the predicted Docs. RAISES C075, C745: it has not."""
    if all(doc_view(example.predicted, pipe.attr) is None for example in examples):
        check = SilenceCheck(pipe)
        deque(check.watch(examples), maxlen=0)  # runs through all examples
        raise check.error()
