"""Rows in, pages and pictures out."""
