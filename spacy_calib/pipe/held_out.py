"""The scores that a fit gave the tokens of its own Docs, each by maps that did not see the document."""

from __future__ import annotations

import numpy as np
from spacy.tokens import Doc

from ..doc.annotations import columns_of, get_annotation, label_hashes
from ..types import Floats
from .component import Calibrator

# Two runs of a component over one Doc differ by no more.
_SAME = 1e-5


class HeldOutScores:
    """Hands out the scores of the Docs that a calib pipe was just fitted on, one Doc after the other in the order of the fit.

    A pipe gives its own fit documents scores that are too good: what learns from those would trust them too much on others.
    """

    def __init__(self, calib: Calibrator):
        """calib (Calibrator): Fitted in this process."""
        self._judged, self._labels = calib.held_out, label_hashes(calib.labels)
        self._annotation = get_annotation(calib.fit_info.layer)
        pairs = None if self._judged is None else self._judged.pairs
        self._codes = np.zeros(0, dtype=np.intp) if pairs is None else pairs.rows * len(self._labels) + pairs.tags
        self._order = np.argsort(self._codes, kind="stable")
        self._offset = 0

    def of_next(self, doc: Doc, raw: Floats) -> Floats:
        """The held-out score of each token's label, NaN where there is none. raw (Floats): What the Doc holds of it before calibration, by which it is told
        that both are of one token.
        """
        found = np.full(len(doc), np.nan)
        offset, self._offset = self._offset, self._offset + len(doc)
        columns = columns_of(self._annotation.hashes(doc), self._labels)
        tokens = np.flatnonzero(columns >= 0)
        if self._judged is None or not len(tokens) or not len(self._codes):
            return found
        wanted = (offset + tokens) * len(self._labels) + columns[tokens]
        place = self._order[np.minimum(np.searchsorted(self._codes, wanted, sorter=self._order), len(self._codes) - 1)]
        own = (self._codes[place] == wanted) & (np.abs(self._judged.pairs.scores[place] - raw[tokens]) < _SAME)
        found[tokens[own]] = self._judged.calibrated[place[own]]
        return found
