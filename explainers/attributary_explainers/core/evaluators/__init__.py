"""Evaluators: predictions of one kind of model for many rows, rows (n x d) to predictions (n x k)."""
