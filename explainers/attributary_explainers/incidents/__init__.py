"""Incidents: a single story of all that a model's watches find."""
