"""What is built on the package and never imported by it: pretrained calibrations."""
