"""Tells lasting shifts of importance, with one promise for ever: how rarely it tells one that is none.

May import `validation`, `errors`, `typing`, `core`.
"""
