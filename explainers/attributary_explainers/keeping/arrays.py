"""Arrays as plain data for a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..typing import Array, Snapshot


def pack(values: npt.NDArray[Any]) -> Snapshot:
    """Return an array as plain data."""
    return {"type": values.dtype.str, "shape": list(values.shape), "bytes": values.tobytes()}


def unpack(packed: Snapshot) -> npt.NDArray[Any]:
    """Return the array that was packed, as a copy that can be changed."""
    return np.frombuffer(packed["bytes"], dtype=packed["type"]).reshape(packed["shape"]).copy()


def pack_symmetric(matrix: Array) -> Snapshot:
    """Return a symmetric matrix as plain data, by its lower triangle."""
    return pack(matrix[np.tril_indices(len(matrix))])


def unpack_symmetric(packed: Snapshot) -> Array:
    """Return the matrix that was packed, with zeros above the diagonal."""
    values = unpack(packed)
    n = int((np.sqrt(8.0 * len(values) + 1.0) - 1.0) / 2.0 + 0.5)
    matrix = np.zeros((n, n))
    matrix[np.tril_indices(n)] = values
    return matrix
