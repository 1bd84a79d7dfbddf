"""Coreference: which mentions of a Doc name the same thing, with exact pair probabilities, and their calibration."""

# The attribute of a Doc: Doc._.coref.
ATTRIBUTE = "coref"
