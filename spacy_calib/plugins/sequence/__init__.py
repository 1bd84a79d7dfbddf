"""Sequence models with exact marginals, as trainable components."""
