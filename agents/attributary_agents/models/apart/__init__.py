"""Work in separate processes, within limits of time and memory.

Nothing that happens there can end the worker.
"""

from .process import ApartError, run_apart

__all__ = ["ApartError", "run_apart"]
