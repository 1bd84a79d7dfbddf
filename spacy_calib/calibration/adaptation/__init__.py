"""Adaptation of calibrated scores to a new domain, fitted to a few labelled documents. No Docs are needed."""
