"""Bounds the store: thins what is older than a day, drops what is too old, and the oldest where it is too much."""
