"""Calibrated scores and statistics of a fit on Apache Spark (extra `spark`; imported by nothing of ours).

What runs on the workers stands in `workers`, which they import by name: spacy-calib and the pipeline must be installed there.
"""

from __future__ import annotations

from ..errors import calib_error

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "pyspark":
        raise
    raise calib_error("C450") from None

from .scoring import score
from .session import local_session

__all__ = ["local_session", "score"]
