"""What a fit keeps of its documents, and what it says of others."""
