"""Draws given the features that are kept, by stored rows that a regression shifts.

May import what `imputers` may.
"""
