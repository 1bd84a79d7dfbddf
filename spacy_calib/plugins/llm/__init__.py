"""What a language model answers, with the probabilities of its tokens."""
