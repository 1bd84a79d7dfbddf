"""Maps learned from pairs: recalibrators, groupings, scalings, and the steps for tokens and spans."""
