"""Entity recognition by transitions: decoding that keeps the probability of what it decides. Sees Docs and spaCy's parser model."""
