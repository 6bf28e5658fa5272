"""Joins observations with labels that come at another time, per model."""
