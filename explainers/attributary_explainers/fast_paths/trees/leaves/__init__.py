"""Leaves of trees as arrays: what is read of them after they have learnt, and how it is written down.

May import what `trees` may.
"""
