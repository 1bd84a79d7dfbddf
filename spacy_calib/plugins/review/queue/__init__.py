"""What people should look at first: units of text in an order, the queue of those that are wanted, and files of it."""
