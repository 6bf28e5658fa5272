"""Sees to it that no record, deployment or stored state ends worker after worker."""

from .endings import Begun, Endings

__all__ = ["Begun", "Endings"]
