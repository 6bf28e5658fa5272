"""Measures what a person is told of one change: how often, when, of what, and whether it contradicts itself."""
