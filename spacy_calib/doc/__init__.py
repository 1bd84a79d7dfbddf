"""What a Doc carries: layers, gold, events, blocks and attributes."""
