"""Classifiers that predict P(yes) from features: k-NN, a decision tree, logistic regression and gradient boosting."""
