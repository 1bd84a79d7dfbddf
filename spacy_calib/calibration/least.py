"""The search for the weights of least loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..types import Floats


def least(
    loss: Callable[[Floats], tuple[float, Floats]], begin: Floats, tolerance: float, most_steps: int, memory: int
) -> Floats:
    """Where a smooth loss is least, by L-BFGS.

    loss (Callable): Weights -> (loss, its gradient). begin (Floats): Where the search begins. tolerance (float): It ends with a step that
    lowers the loss by less than this share of it. memory (int): Pairs of steps and gradients that are kept.
    """
    from scipy.optimize import minimize

    options = {"maxiter": most_steps, "ftol": tolerance, "gtol": 1e-3, "maxcor": memory}
    # The vectors are short: threads would mostly wait for one another.
    with _libraries().limit(limits=1):
        found: Floats = minimize(loss, begin, jac=True, method="L-BFGS-B", options=options).x
    return found


@cache
def _libraries() -> Any:
    """The libraries of linear algebra that are loaded; to look for them takes longer than a short search."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
