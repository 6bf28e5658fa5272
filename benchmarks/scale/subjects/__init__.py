"""Processes that stand beside the worker: each takes one JSON object as argument, and says on stdout where it is."""
