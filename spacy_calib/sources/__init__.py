"""Docs -> marginals: where probabilities come from. One file per source; all share the contract in `source`."""
