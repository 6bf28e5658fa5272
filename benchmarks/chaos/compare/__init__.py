"""Comparison of a disturbed group with an undisturbed run."""
