"""Coreference: which mentions of a Doc name the same thing, with exact pair probabilities, and their calibration."""
