"""Reads signals of a model's predictions: of classes, and of numbers."""
