"""Evaluators: predictions (n x k) of a kind of model for rows (n x d)."""
