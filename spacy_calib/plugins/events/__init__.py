"""Probabilities that yes-or-no questions about spans of a Doc, such as "is every tag right?", are answered yes."""
