"""Marginals and gold -> pairs; bins, weights, folds and documents of pairs."""
