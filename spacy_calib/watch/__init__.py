"""Windows of a stream of texts: counts that add up, what accuracy to expect in each, alarms at a stated rate."""
