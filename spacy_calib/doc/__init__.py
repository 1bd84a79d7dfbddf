"""What a Doc carries: annotations, gold, events, blocks and attributes."""
