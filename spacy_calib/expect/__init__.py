"""What is to be expected without gold: accuracy, drift and alarms, counts, forecasts of whole units; and what a fit remembers."""
