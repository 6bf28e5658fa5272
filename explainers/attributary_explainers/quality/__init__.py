"""How good a model is in the field's own words, by River's metrics with exponential forgetting.

May import `losses`, `predictions`, `ordering`, `validation`, `errors` and `typing`.
"""
