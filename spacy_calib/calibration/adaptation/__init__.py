"""Adaptation of a calibration to a new domain, by a few labelled documents. No Docs are needed."""
