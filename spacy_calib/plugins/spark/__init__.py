"""Calibrated scores as rows of tables, also on Apache Spark, whose workers need spacy-calib and the pipeline."""

from .score_rows import score_rows, score_schema
from .text_scorer import TextScorer

__all__ = ["TextScorer", "score_rows", "score_schema"]
