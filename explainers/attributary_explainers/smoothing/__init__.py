"""Exponential smoothing with exact weights: means, importances, and their standard errors.

May import `predictions`, `validation`, `compiled`, `typing` and `errors`.
"""
