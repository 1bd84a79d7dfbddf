"""What to expect without gold: accuracy, drift, counts, forecasts of whole units; and what a fit remembers."""
