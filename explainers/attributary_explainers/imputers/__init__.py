"""Imputers: they replace removed features by values of stored observations, drawn by a rule.

May import `core`, `evaluation` (for rows as arrays), `keeping`, `predictions`, `ordering`, `validation`, `typing` and
`errors`.
"""
