"""Events of a model: importances, changes, and shifts of importance.

May import what `models` may.
"""
