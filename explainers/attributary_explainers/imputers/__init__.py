"""Imputers: they replace removed features by values of stored observations, drawn by a rule.

May import `evaluation` (for rows as arrays), `predictions`, `compiled`, `ordering`, `validation`, `typing` and
`errors`.
"""
