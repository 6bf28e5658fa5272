"""Tells lasting shifts of importance, with a bound on false alarms.

May import `validation`, `errors`, `typing`, `core`.
"""
