"""What a person should look at first: units of text in the order of doubt, and review queues for annotation tools."""
