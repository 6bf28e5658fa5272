"""Evaluators: predictions (n x k) of one kind of model for rows (n x d)."""
