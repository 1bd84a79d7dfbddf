"""Everything that turns raw scores into calibrated ones: recalibrators, groupings, scalings, and the steps of a calibration."""
