"""Pairs made from marginals and gold, their bins, documents and folds, label maps, and scored corpora. No Docs are needed."""
