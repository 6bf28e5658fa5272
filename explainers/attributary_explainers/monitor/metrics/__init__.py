"""A model's metrics: the catalogue, limits on series, and the reading."""
