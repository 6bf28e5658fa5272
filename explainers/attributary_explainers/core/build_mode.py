"""Say whether the core runs as C or as plain Python."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from . import _cython as cython


def is_compiled() -> bool:
    """Return whether the core runs as C."""
    return bool(cython.compiled)
