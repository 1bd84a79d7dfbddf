"""Queries whose matches are counted, such as a label or a token pattern, and the probability of each match."""
