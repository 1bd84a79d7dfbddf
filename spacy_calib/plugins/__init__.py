"""What the core imports only when it is asked for."""
