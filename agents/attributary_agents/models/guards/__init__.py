"""Keeps out of a model what would stop the worker, ruin the model, or let it grow without end.

May import what `models` may.
"""
