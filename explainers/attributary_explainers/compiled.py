"""Numba where it is installed, and plain Python where it is not."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

numba: Any
try:
    if os.environ.get("ATTRIBUTARY_NUMBA") == "0":
        raise ImportError("switched off by ATTRIBUTARY_NUMBA=0")
    import numba
except ImportError:
    numba = None

HAS_NUMBA: bool = numba is not None
"""Whether kernels are compiled. Where not, an evaluator takes numpy, or says that it does not cover the model."""


def compiled(function: F) -> F:
    """A kernel: compiled by numba, without Python objects, and kept on disk; as it is without numba."""
    if numba is None:
        return function
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    kernel: F
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is nowhere to keep it: neither beside this file nor in NUMBA_CACHE_DIR
        kernel = numba.njit(**options)(function)
    return kernel
