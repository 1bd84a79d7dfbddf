"""Sequence labellers that learn online from sparse features (Mejer & Crammer 2010)."""
