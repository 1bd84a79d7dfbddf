"""Scores of whole spans: events, features, recalibration."""
