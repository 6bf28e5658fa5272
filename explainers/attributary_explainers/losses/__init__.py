"""Losses: how wrong one prediction is, by the formula and in compiled form.

May import `predictions`, `validation`, `compiled`, `typing` and `errors`.
"""
