"""A model's quality by River's metrics, with exponential forgetting.

May import `losses`, `predictions`, `ordering`, `validation`, `errors` and `typing`.
"""
