"""The report page of an evaluation, its pictures, and the local page of `calib view`."""
