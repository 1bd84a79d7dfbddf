"""Vector scaling: a factor and a bias for each tag."""

from __future__ import annotations

from .log_linear import LogLinearScaling


class VectorScaling(LogLinearScaling):
    """A factor and a bias for each tag, pulled towards one factor for all and no bias (Guo et al. 2017, section 4.2, with a ridge)."""

    registered = "spacy-calib.VectorScaling.v1"
    short = "vector"
    growth = 1
    pairwise = "self"
