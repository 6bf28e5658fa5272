"""Answers from the store's tables: windows, moments, models, incidents."""
