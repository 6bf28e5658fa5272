"""Incremental partial dependence: the curves, the grids that they stand on, and the rows that they are evaluated on.

May import `models`, `evaluation`, `predictions`, `smoothing`, `plots`, `incremental.base` and what these may import.
"""
