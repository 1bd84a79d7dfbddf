"""Calibrated scores as rows of tables, and on Apache Spark; spacy-calib and the pipeline must be installed on the workers."""

from .score_rows import score_rows, score_schema
from .text_scorer import TextScorer

__all__ = ["TextScorer", "score_rows", "score_schema"]
