"""Analysis for its own sake: what a Brier score is made of, how well calibration errors are estimated, and tags of neighbouring tokens."""
