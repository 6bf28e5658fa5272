"""Sees to it that no record, deployment or stored state ends worker after worker."""

from .endings import Endings

__all__ = ["Endings"]
