"""Draws given the kept features: stored rows, shifted by a regression.

May import what `imputers` may.
"""
