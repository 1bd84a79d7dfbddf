"""Files of scores: a row for each unit (token, document) and tag, in CSV, JSON Lines, Parquet or NumPy's .npz."""

from .units import SUFFIXES, ScoreUnits, has_cells, is_score_file, read_units, with_calibrated

__all__ = ["SUFFIXES", "ScoreUnits", "has_cells", "is_score_file", "read_units", "with_calibrated"]
