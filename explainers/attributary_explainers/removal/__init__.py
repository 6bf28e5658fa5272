"""Removal of features: imputers, and the reservoirs that they draw from.

May import `core`, `evaluation` (for rows as arrays), `packing`, `predictions`, `ordering`, `validation`, `typing` and
`errors`.
"""
