"""Dependency parsing with spaCy's transition-based models, decoded so that the probability of each arc is kept."""
