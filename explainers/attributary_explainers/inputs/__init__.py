"""Watches the values of features, which break before any loss shows it."""
