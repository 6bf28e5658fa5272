"""Processes that stand beside the worker: each takes one JSON object as its argument, and says where it is on stdout."""
