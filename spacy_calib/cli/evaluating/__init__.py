"""The parts of `spacy calib evaluate`: its table on the screen, and raw scores where nothing is fitted."""
