"""What is noted of the Docs that `spacy calib count` passes: whether they have scores and gold, and whether they are like the fit data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...expect.drift import DIFFERENT, LIKE, OTHER_WEIGHTS, TOO_FEW, Labelled
from ...expect.drift_sums import DriftSums
from ...pairs.documents import DocumentNumbers
from ...types import Ints

if TYPE_CHECKING:
    from spacy.training import Example

    from ...doc.carried import Carried
    from ...doc.queries.base import Query
    from ...pipe.component import Calibrator


@dataclass
class Seen:
    """What is noted of the Docs that pass.

    pipes (Sequence[Calibrator]). compared (Collection[str]): Prefixes of those whose texts are compared with the fit data. scored (bool): Whether one of them wrote scores. gold (set[str]): Prefixes of those whose labels the gold has.
    sums (dict[str, DriftSums]): Prefix -> what is compared with the fit data, of those that keep a record of it.
    """

    pipes: Sequence[Calibrator]
    compared: Collection[str] = ()
    scored: bool = False
    gold: set[str] = field(default_factory=set)
    sums: dict[str, DriftSums] = field(default_factory=dict)

    def over(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples. The Docs are added up in the end: of one document, those that stand together."""
        from ...doc.annotations import get_annotation
        from ...doc.attributes import doc_view
        from ...doc.carried import CarriedReader
        from ...doc.reading import document_of

        asked = [pipe for pipe in self.pipes if pipe.attr in self.compared and pipe.learned.record is not None]
        readers = {pipe.attr: CarriedReader(pipe.attr, pipe.lookup.labels()) for pipe in asked}
        numbers, documents, held = DocumentNumbers(), list[int](), {attr: list[Any]() for attr in readers}
        for example in examples:
            documents.append(numbers.number(document_of(example)))
            for attr, reader in readers.items():
                held[attr].append(reader.prepare(example.predicted))
            self.scored = self.scored or any(doc_view(example.predicted, pipe.attr) is not None for pipe in self.pipes)
            for pipe in self.pipes:
                if pipe.attr not in self.gold and get_annotation(pipe.fit_info.layer).gold_hashes(example.reference).any():
                    self.gold.add(pipe.attr)
            yield example
        for pipe in asked if documents else ():
            self._add(pipe, readers[pipe.attr].read(held[pipe.attr]), np.array(documents), len(numbers))

    def _add(self, pipe: Calibrator, read: Carried, documents: Ints, n_docs: int) -> None:
        """documents (Ints): Number of the document of each Doc that was read."""
        assert pipe.learned.record is not None
        names = np.array([*pipe.lookup.labels(), "", None], dtype=object)[:-1][read.columns].tolist()
        own = documents[read.documents]
        order = np.argsort(own, kind="stable")
        tokens = Labelled(own, n_docs, names, read.raw, read.calibrated).take(order)
        spans = Labelled(np.zeros(len(read.span_raw), dtype=np.intp), n_docs, None, read.span_raw, read.span_calibrated)
        sums = pipe.learned.record.profile.sums_of(tokens, spans)
        self.sums[pipe.attr] = self.sums[pipe.attr] + sums if pipe.attr in self.sums else sums

    def drift(self, seed: int) -> dict[str, dict[str, Any]]:
        """Prefix -> whether the texts are like the fit data, as `expect` tells it. seed (int): Of the draws that show what chance makes."""
        from ...expect.summary import told_of_drift

        found = {}
        for pipe in self.pipes:
            if pipe.attr in self.sums and pipe.learned.record is not None:
                told = told_of_drift(pipe.learned.record.profile.judge(self.sums[pipe.attr], seed))
                found[pipe.attr] = {**told, "verdict": OTHER_WEIGHTS} if pipe.lookup.weights_changed() else told
        return found


def verdict_for(query: Query, drift: Mapping[str, Any]) -> str:
    """How far the texts are known to be like the fit data, for a query: what is said of the pipes whose labels it asks for, the worst of it. drift (Mapping):
    Prefix of a pipe -> "verdict".
    """
    found = {drift[attr]["verdict"] for attr, _ in query.labels if attr in drift}
    return next((verdict for verdict in (OTHER_WEIGHTS, DIFFERENT, TOO_FEW) if verdict in found), LIKE)
