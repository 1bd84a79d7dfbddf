"""Classifiers that say how probable yes is, given features: k nearest neighbours, trees, logistic regression, boosting."""
