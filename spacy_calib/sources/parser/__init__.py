"""Dependency parsing by transitions: decoding that keeps the probability of every arc. Sees Docs and spaCy's parser model."""
