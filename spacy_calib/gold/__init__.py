"""Gold files, answers of annotation tools, checks, and Examples as spaCy evaluates them."""
