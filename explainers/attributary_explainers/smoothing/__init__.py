"""Exact exponential smoothing: means, importances and standard errors.

May import `core`, `predictions`, `validation`, `typing` and `errors`.
"""
