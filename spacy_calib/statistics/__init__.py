"""Statistics of pairs that add up: tables of counts from any number of shards, and the maps and figures that follow from them alone."""
