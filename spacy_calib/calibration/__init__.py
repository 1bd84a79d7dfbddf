"""Maps learned from pairs: recalibrators, groupings, scalings, and what is made of them for tokens and spans."""
