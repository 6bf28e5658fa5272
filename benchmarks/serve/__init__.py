"""Measures what `attributary serve` costs: its store, and answers from it."""
