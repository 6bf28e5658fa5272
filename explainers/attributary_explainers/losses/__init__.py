"""Losses: how wrong a prediction is.

May import `core`, which has the formulas, `predictions`, `ordering`, `validation`, `wording`, `typing` and `errors`.
"""
