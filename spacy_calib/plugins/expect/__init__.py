"""The command `spacy calib expect`: estimate the accuracy on texts without gold."""
