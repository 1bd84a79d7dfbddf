"""Sequence models with exact marginals, as trainable components: chains of labels and what can be asked of them."""
