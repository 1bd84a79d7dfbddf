"""What surrounds a token: features of it and of its document, and the step after the maps that looks at them."""
