"""Remembers which records have been taken before, as part of a checkpoint."""
