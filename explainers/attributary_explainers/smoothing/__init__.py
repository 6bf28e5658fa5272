"""Exponential smoothing with exact weights: means, importances, and their standard errors.

May import `core`, `predictions`, `validation`, `typing` and `errors`.
"""
