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
    """Clusterings.

    view (DocCoref): Of which mentions. first (Ints): The first mention of each mention's cluster, shape (n, n_mentions).
    off (float): How far the pair probabilities of the draws are from the calibrated ones, as the root of the mean square over the pairs of `view.pairs`.
    """

    view: DocCoref
    first: Ints
    off: float

    def __len__(self) -> int:
        return len(self.first)

    def write(self, doc: Doc, number: int) -> None:
        """Clusters of two or more stand in doc.spans["coref_clusters_1"] and so on, in place of those that stood there."""
        clusters = self.view.clustered(self.first[number])
        write_clusters(doc, _PREFIX, [[doc[span.start : span.end] for span in cluster] for cluster in clusters])


def draw_clusters(view: DocCoref, n: int, seed: int, calibrated: bool) -> ClusterDraws:
    """n clusterings. seed (int): With the text it decides what is drawn. calibrated (bool): Whether they are to follow the calibrated pairs.

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
