"""The metrics of a model: the catalogue, which series there are at most, and how they are read off its state."""
