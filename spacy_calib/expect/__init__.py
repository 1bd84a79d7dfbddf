"""Accuracy without gold, drift, and what a fit remembers."""
