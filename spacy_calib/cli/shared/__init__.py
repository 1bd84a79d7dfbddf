"""Functions and classes that commands share: options, loading, reading data, running pipes, printing and writing."""
