"""Sums over the fit documents that a pipe saves, and estimates for new documents from them."""
