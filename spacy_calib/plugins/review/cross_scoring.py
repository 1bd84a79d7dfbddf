"""Out-of-fold scores of gold: each fold of documents is scored by a calibration that was fitted on the other folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy import util
from spacy.training import Example

from ...gold.reading import document_of
from ...pairs.documents import DocumentNumbers, folds_of
from .messages import calib_error

if TYPE_CHECKING:
    from ...pipe.component import Calibrator

N_FOLDS = 5
_BATCH = 128


def score_out_of_fold(
    calib: Calibrator,
    examples: Sequence[Example],
    progress: Callable[[Iterable[Any], str], Iterable[Any]] = lambda steps, title: steps,
) -> None:
    """Write on each predicted Doc the scores of a calibration of the other folds; the pipe stays fitted on the last ones.

    examples (Sequence[Example]): `predicted` has what the source reads and the predicted labels, `reference` the gold.
    progress (Callable): (steps, title) -> the same steps, with a progress bar. RAISES C625: one document. As `Calibrator.fit`.
    """
    numbers = DocumentNumbers()
    documents = np.array([numbers.number(document_of(example)) for example in examples], dtype=np.intp)
    if len(numbers) < 2:
        raise calib_error("C625")
    words = np.repeat(np.arange(len(examples)), [max(1, len(example.predicted)) for example in examples])
    fold_of = np.zeros(len(examples), dtype=np.intp)
    fold_of[words] = folds_of(documents[words], N_FOLDS)
    for fold in progress(range(int(fold_of.max()) + 1), "Fitting and scoring"):
        calib.fit([examples[i] for i in np.flatnonzero(fold_of != fold).tolist()])
        for batch in util.minibatch((examples[i].predicted for i in np.flatnonzero(fold_of == fold).tolist()), _BATCH):
            calib.set_annotations(batch, calib.predict(batch))
