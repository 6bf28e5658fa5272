"""Predictions of many rows at once, equal to the model's own: fast paths by type, and the naive one behind them."""
