"""The parts of the commands that read files of scores: the calibrator, and what it says of them."""
