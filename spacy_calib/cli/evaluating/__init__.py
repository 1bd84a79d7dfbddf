"""The parts of `spacy calib evaluate` and `threshold`: options, evaluation of fitted or raw scores, printed tables."""
