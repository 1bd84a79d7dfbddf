"""What satisfies a query, counted with an interval."""
