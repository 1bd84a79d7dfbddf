"""Units of text in the order in which people should review them, the queue of the chosen ones, and its files."""
