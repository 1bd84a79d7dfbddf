"""What people look at: predictions to check, texts to label, gold that is probably wrong."""
