"""What a calibrator says of a file of scores with gold, counted as what a pipe says of documents is."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .scored_file import scored_file

if TYPE_CHECKING:
    from ...statistics.judged import JudgedStatistics
    from ..shared.run import Run


def judged_file(run: Run) -> JudgedStatistics:
    """The statistics of the scores at DATA, whose documents are told apart by number. RAISES CalibError: see `scored_file`."""
    from ...pipe.scorer import CalibScorer
    from ...statistics.identity import Identity, Shard
    from ...statistics.judged import NOTHING_ACCEPTED, JudgedStatistics, count_judged

    calibrator, corpus = scored_file(run)
    labels, threshold = tuple(str(label) for label in calibrator.classes_.tolist()), calibrator.threshold
    identity = Identity(
        weights="", component="scores", kind="scores", layer="tag", labels=labels, span_labels=(), threshold=threshold,
        lowest=threshold, event="", source="", label_map="", features=(), cells=0, sample=1,
        fit=blake2b(calibrator.to_bytes(), digest_size=16).hexdigest(),
    )  # fmt: skip
    about = {
        "name": Path(run.model).name, "attr": "", "layer": "tag", "accuracy_is": "accuracy", "event": "", "called": ["entity", "entities"],
        "groups": calibrator.groups_.state(), "span_groups": None, "bins": CalibScorer().n_bins, "n_groups": None, "precision": None,
        "weights_changed": None, "recall": None, "events": [],
    }  # fmt: skip
    return JudgedStatistics(
        identity,
        about,
        (Shard("", "", corpus.n_documents),),
        count_judged(corpus.pairs(), len(labels)),
        None,
        frozenset({corpus.unit}),
        np.arange(corpus.n_documents, dtype=np.uint64),
        None,
        NOTHING_ACCEPTED,
    )
