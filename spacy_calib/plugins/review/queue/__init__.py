"""The queue of units to review: units of text, their order by doubt, the choice among them, and the queue's files."""
