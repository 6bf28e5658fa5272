"""Losses: how wrong one prediction is.

May import `core`, which has the formulas, `predictions`, `validation`, `wording`, `typing` and `errors`.
"""
