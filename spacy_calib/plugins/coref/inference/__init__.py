"""The mathematics of antecedents: pair probabilities, samples, the fit, figures of merit. Knows arrays only."""
