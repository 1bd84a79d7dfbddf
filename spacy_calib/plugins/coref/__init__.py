"""Coreference: which mentions name the same thing, with exact pair probabilities."""

# The attribute of a Doc: Doc._.coref.
ATTRIBUTE = "coref"
