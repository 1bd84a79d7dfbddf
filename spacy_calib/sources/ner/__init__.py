"""Entity recognition by transitions: decoding that keeps the probability of what it decides."""
