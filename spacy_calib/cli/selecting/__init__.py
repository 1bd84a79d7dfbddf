"""The parts of `spacy calib select`: what is chosen, how it is written, and what is said of it."""
