"""Imputers: they replace the removed features of a row by other values.

May import `core`, `evaluation` (for rows as arrays), `snapshots`, `values`, `predictions`, `ordering`, `validation`,
`typing` and `errors`.
"""
