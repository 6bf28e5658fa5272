"""Evaluation on many rows at once: the schema that encodes them, what a fast path is, and which model has one.

May import `core`, `predictions`, `ordering`, `typing` and `errors`. It knows no single kind of model:
`fast_paths` does.
"""
