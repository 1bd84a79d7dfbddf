"""Sparse features of tokens, in the manner of Sha & Pereira (2003)."""
