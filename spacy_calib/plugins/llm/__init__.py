"""Read answers of language models with the probabilities of their tokens, and put them on Docs with scores."""
