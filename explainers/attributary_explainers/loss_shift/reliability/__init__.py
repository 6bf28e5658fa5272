"""Tests whether a model's probabilities still come true as they did."""
