"""What to expect without gold: accuracy, drift, alarms, counts, forecasts of whole units; and what a fit remembers."""
