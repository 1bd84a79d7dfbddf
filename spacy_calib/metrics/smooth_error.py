"""smECE: the calibration error of residuals that a kernel smooths, without bins (Blasiok and Nakkiran 2023)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..types import as_hits, as_probabilities

# Steps of the grid on [0, 1]. On a million pairs with nearly calibrated scores twice as many change smECE by less than 1e-7.
STEPS = 2**14


def smooth_calibration_error(scores: ArrayLike, hits: ArrayLike) -> float | None:
    """Return smECE (Blasiok and Nakkiran 2023): smECE_sigma for the sigma with smECE_sigma = sigma, so no width is chosen.

    smECE_sigma is the integral over t in [0, 1] of |r(t)|, with r(t) = 1/n sum_i K(score_i, t) (hit_i - score_i): the
    residuals of n pairs, spread by a kernel K. It never rises with sigma. smECE lies between |mean score - share of hits| of
    all pairs and the l1 error of bins of one distinct score each.
    K is the Gaussian of deviation sigma, reflected at 0 and 1, as heat spreads in a rod with closed ends. It multiplies the
    amplitude of cos(pi k t) by exp(-(pi k sigma)^2 / 2), so two cosine transforms smooth the residuals on a grid, however
    many pairs there are. The two grid points around a score share its residual.
    scores (ArrayLike): n probabilities. hits (ArrayLike): n booleans, or zeros and ones.
    RETURNS (float | None): None without pairs. RAISES C001: values out of range. C002: lengths differ.

        >>> round(smooth_calibration_error([0.9, 0.9, 0.6, 0.6], [1, 0, 1, 0]), 4)
        0.25
    """
    from scipy.fft import dct
    from scipy.optimize import brentq

    if not np.size(scores):
        return None
    probabilities = as_probabilities("scores", scores)
    residuals = (as_hits(hits, len(probabilities)) - probabilities) / len(probabilities)
    left_point = np.minimum((probabilities * STEPS).astype(np.intp), STEPS - 1)
    right_share = probabilities * STEPS - left_point
    on_grid = np.bincount(left_point, residuals * (1 - right_share), STEPS + 1)
    on_grid += np.bincount(left_point + 1, residuals * right_share, STEPS + 1)
    # The transform counts all points twice but the two at the ends.
    amplitudes = dct(np.concatenate([on_grid[:1], on_grid[1:-1] / 2, on_grid[-1:]]), type=1)

    def smoothed_error(sigma: float) -> float:
        """Return smECE_sigma: the integral of |smoothed residuals| by the trapezoidal rule."""
        damping = np.exp(-((np.pi * sigma * np.arange(STEPS + 1)) ** 2) / 2)
        height = np.abs(dct(amplitudes * damping, type=1))
        return float((height.sum() - (height[0] + height[-1]) / 2) / STEPS)

    # smECE_sigma - sigma is at least 0 for sigma = 0, and at most 0 for sigma = 1 (but for rounding, hence min).
    return float(brentq(lambda width: min(1.0, smoothed_error(width)) - width, 0.0, 1.0))


class SmoothCalibrationError:
    registered = "spacy-calib.SmoothCalibrationError.v1"
    short = "smece"
    title = "smECE"

    __call__ = staticmethod(smooth_calibration_error)
