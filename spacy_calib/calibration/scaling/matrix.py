"""Matrix scaling: how likely each tag of a token is bears on each other one."""

from __future__ import annotations

from .log_linear import LogLinearScaling


class MatrixScaling(LogLinearScaling):
    """Besides a factor and a bias for each tag, each of a token's likelier tags bears on each other one.

    So the tags that the model confuses are told apart by how often they were confused (Kull et al. 2019, section 3.2,
    with the ridge of their section 4 on the whole matrix but for one common factor).
    """

    registered = "spacy-calib.MatrixScaling.v1"
    short = "matrix"
    tried_by_auto = True
    growth = 2
    pairwise = "all"

    def __init__(self, ridge: float | None = None, bias_ridge: float | None = None):
        super().__init__(ridge, bias_ridge)
