"""Docs whose tags come with the scores that a test wants, and a pipe that reads these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import spacy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from spacy_calib.pipe.component import Calibrator

LABELS = ("A", "B", "C", "D")
_NLP = spacy.blank("xx")
_SOURCE = {"@calib_sources": "spacy-calib.DocTensor.v1", "labels": list(LABELS), "key": "probs", "subprobabilities": True}


def reads_given_scores(**settings: Any) -> Calibrator:
    """A pipe with these settings, not fitted."""
    return spacy.blank("xx").add_pipe("calib", config={"source": _SOURCE, **settings})


def doc_scored(scores: Sequence[Sequence[float]] | NDArray[np.float64]) -> Doc:
    """A Doc of tokens with these scores of LABELS; each carries its likeliest tag."""
    table = np.array(scores, dtype=np.float64)
    doc = Doc(_NLP.vocab, words=["x"] * len(table), tags=[LABELS[tag] for tag in table.argmax(axis=1)])
    doc.user_data["probs"] = table
    return doc


def with_gold(doc: Doc, tags: Sequence[int] | NDArray[np.intp]) -> Example:
    """The Doc beside gold of these tags."""
    return Example(doc, Doc(_NLP.vocab, words=[token.text for token in doc], tags=[LABELS[tag] for tag in tags]))
