"""Incremental partial dependence: curves, grids, and the rows asked.

May import `models`, `evaluation`, `predictions`, `smoothing`, `plots`, `incremental.base` and what these may import.
"""
