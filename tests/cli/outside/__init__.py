"""A package that plugs in from outside: each thing that it adds stands in one file, and in one line of entry_points.txt."""
