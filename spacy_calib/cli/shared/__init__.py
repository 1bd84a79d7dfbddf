"""What commands share: options, loading, reading data, running pipes, printing and writing."""
