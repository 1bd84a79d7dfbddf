"""Classifiers that give P(yes) from features: k nearest neighbours, trees, logistic regression, boosting."""
