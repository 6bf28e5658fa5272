"""Measures what a record costs from `Partition.handle` down, of this checkout and of another one in turns."""
