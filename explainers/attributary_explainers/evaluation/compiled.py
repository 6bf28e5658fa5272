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
    """A kernel: compiled by numba, without Python objects, and kept on disk; as it is where there is no numba."""
    if numba is None:
        return function
    kernel: F = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return kernel
