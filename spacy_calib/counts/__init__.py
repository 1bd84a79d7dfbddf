"""How many of many uncertain units: the distribution of a count, from the probabilities of what is counted."""
