"""Statuses of models, sent to their topic by the clock.

No delivery depends on them.
"""
