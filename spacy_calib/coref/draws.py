"""Whole clusterings of a Doc's mentions as draws that make Docs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ..doc.sampling import Draws
from ..errors import calib_error
from ..expect.draws import generator
from ..types import Ints
from .inference.antecedents import refit
from .inference.pairs import DENSE, pair_chances
from .mentions import write_clusters
from .view import DocCoref

_PREFIX = "coref_clusters"


@dataclass(frozen=True, eq=False, repr=False)
class ClusterDraws(Draws):
    """Clusterings. view (DocCoref): Of its mentions. first (Ints): First mention of each one's cluster, (n,
    n_mentions).

    off (float): Root mean square difference of the draws' and the calibrated probabilities, over `view.pairs`.
    """

    view: DocCoref
    first: Ints
    off: float

    def __len__(self) -> int:
        return len(self.first)

    def write(self, doc: Doc, number: int) -> None:
        """Put clusters of two or more into doc.spans["coref_clusters_1"] and so on, in place of those there."""
        clusters = self.view.clustered(self.first[number])
        write_clusters(doc, _PREFIX, [[doc[span.start : span.end] for span in cluster] for cluster in clusters])


def draw_clusters(view: DocCoref, n: int, seed: int, calibrated: bool) -> ClusterDraws:
    """n clusterings. seed (int): Decides the draws, with the text. calibrated (bool): By the calibrated pairs.

    RAISES C001: n or seed is negative. C415: more than 1,000 mentions with calibrated pairs.
    """
    rng = generator(n, seed, get_string_id(view.doc.text))
    antecedents = view.antecedents
    wanted = view.pairs.chances
    if calibrated and view.calibrated is not None:
        if len(view) > DENSE:
            raise calib_error("C415", wanted=DENSE, given=len(view))
        antecedents, wanted = refit(antecedents, view.matrix()), view.calibrated
    reached = pair_chances(antecedents).matrix()[view.pairs.later, view.pairs.earlier] if len(view) <= DENSE else wanted
    off = float(np.sqrt(np.mean((reached - wanted) ** 2))) if len(wanted) else 0.0
    drawn = antecedents.drawn(rng.random((n, len(view))))
    return ClusterDraws(view.doc, np.ones(len(view)), view, drawn, off)
