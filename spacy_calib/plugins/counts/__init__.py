"""Counts of what satisfies a query, with intervals."""
