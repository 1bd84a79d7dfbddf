"""Files of scores: a row for each unit (token, document) and tag, in CSV, JSON Lines, Parquet or NumPy's .npz."""

from .formats import SUFFIXES, has_cells, is_score_file, with_calibrated
from .units import ScoreUnits, read_units

__all__ = ["SUFFIXES", "ScoreUnits", "has_cells", "is_score_file", "read_units", "with_calibrated"]
