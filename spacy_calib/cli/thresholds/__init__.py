"""The parts of `spacy calib threshold`: cut-offs that reach a precision, cut-offs that bound misses, and both for a review."""
