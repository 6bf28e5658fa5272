"""Restoring and storing of a partition's models, in slices.

Records are handled between the slices.
"""
