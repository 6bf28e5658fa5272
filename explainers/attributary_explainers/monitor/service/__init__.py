"""`Monitor` and its parts, for a service that watches its own models."""
