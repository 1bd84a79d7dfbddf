"""Choose what people review: predictions to check, texts to label, gold that is probably wrong."""
