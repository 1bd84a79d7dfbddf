"""Entity recognition with spaCy's transition-based models, decoded so that the probability of each decision is kept."""
