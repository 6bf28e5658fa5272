"""Runs what may not end the worker in a process of its own, under limits of time and memory."""

from .process import ApartError, run_apart

__all__ = ["ApartError", "run_apart"]
