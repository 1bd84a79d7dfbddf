"""The parts of `spacy calib fit`: settings of the pipe, the pipe itself, and what is said of the fit."""
