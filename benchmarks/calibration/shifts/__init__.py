"""Shifts of importance: how often one is told that is none, and how soon one that is. `rows` has the lines."""

from .report import rows

__all__ = ["rows"]
