"""Pairs -> rows -> tables, pages and pictures. Knows arrays and rows, never Docs."""
