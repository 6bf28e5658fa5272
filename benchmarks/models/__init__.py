"""Trained models, given to a worker in every way: whether each says the same."""
