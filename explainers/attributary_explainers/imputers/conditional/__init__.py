"""Draws given the kept features, by an adaptive tree per feature.

Source: iSAGE, Algorithms 3 and 4.

May import what `imputers` may.
"""
