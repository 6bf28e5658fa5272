"""Populations of two classes with a known truth, frozen models of them, and what may happen to both."""
