"""The attacks, a module for each door that they come through; the order here is that of the table."""

from __future__ import annotations

from . import control, edge, growth, labels, minority, mixed, principals, state

__all__ = ["control", "edge", "growth", "labels", "minority", "mixed", "principals", "state"]
