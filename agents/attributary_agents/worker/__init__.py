"""The worker: it handles the records of its partitions, stores their state and commits their offsets.

May import `state`, `models`, `kafka`, `config` and `errors`.
"""
