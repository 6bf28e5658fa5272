"""Template models of a partition: known, permitted and idle."""
