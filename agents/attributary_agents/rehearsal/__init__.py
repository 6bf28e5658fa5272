"""Rehearses a model before a worker runs it: some rows go all the way, into a state that is kept nowhere.

May import `worker` and what that may import.
"""
