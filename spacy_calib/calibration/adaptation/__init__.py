"""A few labelled documents of a new kind -> what is added to the calibration of the old one. Arrays in, arrays out."""
