"""Groupings (labels, counts) -> Groups: which tags share a recalibrator, one file per way; counts may have other tags."""
