"""The expected accuracy on texts without labels."""
