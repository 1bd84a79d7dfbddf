"""Calibrated scores on Apache Spark (extra `spark`); spacy-calib and the pipeline must be installed on the workers."""

from __future__ import annotations

from .messages import calib_error

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "pyspark":
        raise
    raise calib_error("C450") from None

from .sampling import gold_docs
from .scoring import score
from .session import local_session

__all__ = ["gold_docs", "local_session", "score"]
