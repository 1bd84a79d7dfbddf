"""Pretrained calibrations: calibrated scores for stock pipelines, without gold of your own. A card describes each."""
