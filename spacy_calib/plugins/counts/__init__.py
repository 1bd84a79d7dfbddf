"""Counts of what satisfies a query, with an interval."""
