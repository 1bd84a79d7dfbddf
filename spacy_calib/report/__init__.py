"""Pairs -> rows -> tables and pictures. Sees arrays and rows, never Docs."""
