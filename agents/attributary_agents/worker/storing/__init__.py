"""Restores and stores the models of a partition in slices, between which its records are handled."""
