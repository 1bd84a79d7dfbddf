"""Pretrained calibrations: calibrated scores for stock pipelines, without gold. Each is described by a card."""
