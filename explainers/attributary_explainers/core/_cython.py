"""Stand in for the package `cython` where nothing is compiled.

The modules of the core are written in Cython's pure Python mode: compiled they are C, and where they are not compiled
they are ordinary Python, which needs of `cython` no more than the names below. They all begin with

    try:
        import cython
    except ImportError:
        from . import _cython as cython
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")

compiled = False
int = uint = uchar = double = None  # noqa: A001 - its names are those of Cython
bint = longlong = Py_ssize_t = None


def cclass(kind: T) -> T:
    """Mark a class that is a struct of C."""
    return kind


def cfunc(function: T) -> T:
    """Mark a function that only C calls."""
    return function


def ccall(function: T) -> T:
    """Mark a function that C and Python call."""
    return function


def inline(function: T) -> T:
    """Mark a function that the C compiler may put in the place of its call."""
    return function


def final(kind: T) -> T:
    """Mark a class without subclasses."""
    return kind


def declare(_: Any = None, value: Any = None, **__: Any) -> Any:
    """Declare an attribute, or a constant and its value."""
    return value


def exceptval(*_: Any, **__: Any) -> Any:
    """Say which returned value means an exception."""
    return lambda function: function
