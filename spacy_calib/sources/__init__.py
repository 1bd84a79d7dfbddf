"""Sources: each reads the probabilities of a component's labels from Docs. Their base class is in `source`."""
