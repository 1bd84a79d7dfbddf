"""A scaling for few labels: halfway between one temperature and the choice of held-out documents, partly chance."""

from __future__ import annotations

import numpy as np

from ...types import Floats, Ints, Pairs
from .base import held_out
from .log_linear import LogLinearScaling, TemperatureScaling


def fit_cautiously(
    prototype: LogLinearScaling, pairs: Pairs, documents: Ints, n_tags: int, n_folds: int = 5
) -> tuple[LogLinearScaling, Floats]:
    """The renormalized geometric mean of a scaling of the prototype's kind and one temperature.

    pairs (Pairs): As of `Scaling.fit`. documents (Ints): Of the pairs, ascending, two at least. n_tags (int): How many.
    RETURNS (tuple): The scaling; the score of each pair by one that did not see its document. RAISES C003: no pairs.
    """
    whole, line = prototype.clone(), TemperatureScaling()
    for one in (whole, line):
        one.fit_documents(pairs, documents, n_tags)

    def refit(some: Pairs) -> LogLinearScaling:
        return _halfway(whole.refit(some, n_tags), line.refit(some, n_tags))

    return _halfway(whole, line), held_out(pairs, documents, n_folds, refit)


def _halfway(scaling: LogLinearScaling, temperature: LogLinearScaling) -> LogLinearScaling:
    """The scaling of the mean margins: these are linear in the numbers of both."""
    made = scaling.like(scaling.ridge_)
    made.n_tags_, made.codes_ = scaling.n_tags_, scaling.codes_
    made.factor_ = np.asarray((scaling.factor_ + temperature.factor_) / 2)
    made.biases_, made.weights_ = scaling.biases_ / 2, scaling.weights_ / 2
    return made
