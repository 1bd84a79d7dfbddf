"""Gold: files of it, answers of people, checks, and Examples as spaCy evaluates them."""
