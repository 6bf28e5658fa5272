"""Tells the topic of statuses how each model is doing. It follows the clock, and no delivery depends on it."""
