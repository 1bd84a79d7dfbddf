"""Marginals and gold -> pairs: bins, weights, folds, and the scored corpus."""
