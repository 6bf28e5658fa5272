"""Rehearsal of a model before a worker runs it, in a throwaway state.

Some rows go all the way.

May import `worker` and what that may import.
"""
