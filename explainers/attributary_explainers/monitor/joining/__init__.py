"""Joins observations with labels that come later, or before: a state machine for each model."""
