"""Scored corpora, and what people do with them."""
