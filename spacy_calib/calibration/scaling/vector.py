"""Vector scaling: a factor and a bias for each tag."""

from __future__ import annotations

from .log_linear import LogLinearScaling


class VectorScaling(LogLinearScaling):
    """A factor and a bias for each tag, with a ridge towards one factor (Guo et al. 2017, section 4.2)."""

    registered = "spacy-calib.VectorScaling.v1"
    short = "vector"
    growth = 1
    pairwise = "self"
