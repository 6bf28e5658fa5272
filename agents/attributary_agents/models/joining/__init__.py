"""State machine that joins a model's observations with their labels.

The labels come later than the observations, or before.
"""
