"""Draws given the features that are kept, by one adaptive tree per feature (iSAGE, Algorithms 3 and 4).

May import what `imputers` may.
"""
