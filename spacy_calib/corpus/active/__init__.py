"""Active learning: which unlabelled sentences are worth labelling next."""
