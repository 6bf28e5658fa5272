"""Suggests the section of a source from a sample of its records: guesses, each with the reason for it."""
