"""Rows -> pages and pictures."""
