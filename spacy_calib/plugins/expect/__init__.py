"""The accuracy on texts without labels."""
