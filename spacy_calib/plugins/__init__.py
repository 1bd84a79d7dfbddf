"""What the core does not import: each folder or module here plugs in through entry points."""
