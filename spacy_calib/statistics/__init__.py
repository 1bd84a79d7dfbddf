"""Tables of counts of pairs that add up over any number of shards, and the maps and figures that follow from them."""
