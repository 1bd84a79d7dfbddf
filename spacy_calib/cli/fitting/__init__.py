"""The parts of `spacy calib fit`: settings of the pipe, the pipe itself, and the report of the fit."""
