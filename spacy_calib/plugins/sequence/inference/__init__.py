"""Exact inference in linear chains of labels. Knows arrays, never Docs or components."""
