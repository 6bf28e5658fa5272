"""Breaks workers and brokers in every way that we could think of, and compares with an undisturbed run."""
