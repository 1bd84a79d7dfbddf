"""Probabilities of yes-or-no questions about whole answers: features, forecasters, and what their squared loss is made of."""
