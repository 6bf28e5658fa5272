"""Packs importances and half widths as float32, and unpacks them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LARGE, _SMALL = 1e30, 1e-30  # beyond these a common factor keeps numbers from becoming infinite, or 0
LARGEST = float(np.finfo(np.float64).max)


def pack(importance: Floats, half_width: Floats) -> tuple[int, bytes]:
    """Return a power of two, and the numbers divided by it as float32; NaN stays NaN.

    What is more than 10^37 times smaller than the largest of them becomes 0.
    """
    numbers = np.concatenate([importance, half_width])
    known = np.abs(numbers[np.isfinite(numbers)])
    largest = float(known.max()) if known.size else 0.0
    scale = 0 if largest == 0.0 or _SMALL < largest < _LARGE else math.frexp(largest)[1]
    if scale:
        # In two steps: 2 to the power of 1024 is no float.
        numbers = np.ldexp(np.ldexp(numbers, -(scale // 2)), -(scale - scale // 2))
    return scale, numbers.astype(np.float32).tobytes()


def unpack(
    rows: Sequence[tuple[int, bytes]], n_features: int, columns: NDArray[np.int64] | None = None
) -> tuple[Floats, Floats]:
    """Return importances and half widths of rows of one list of features, (n_rows, n_features or n_columns) each."""
    packed = np.frombuffer(b"".join([numbers for _, numbers in rows]), np.float32).reshape(len(rows), 2, n_features)
    numbers = (packed if columns is None else packed[:, :, columns]).astype(np.float64)
    scales = np.fromiter((scale for scale, _ in rows), np.int64, len(rows))
    if scales.any():
        half = scales // 2
        numbers = np.ldexp(np.ldexp(numbers, half[:, None, None]), (scales - half)[:, None, None])
    return numbers[:, 0], numbers[:, 1]


def pack_figures(values: Sequence[float | None]) -> tuple[int, bytes]:
    """Return which of some numbers are known, a bit each, and these as bytes.

    A column for each would take more room, and most of the time that a window takes.
    """
    known = [(at, value) for at, value in enumerate(values) if value is not None and not math.isnan(value)]
    return sum(1 << at for at, _ in known), struct.pack(f"<{len(known)}d", *(value for _, value in known))


def unpack_figures(rows: Sequence[tuple[int, bytes]], n_figures: int) -> Floats:
    """Return numbers of rows, (n_rows, n_figures); NaN where one is not known."""
    found = np.full((len(rows), n_figures), np.nan)
    by_known: dict[int, list[int]] = {}
    for at, (bits, _) in enumerate(rows):
        by_known.setdefault(bits, []).append(at)
    for bits, some in by_known.items():
        columns = [at for at in range(n_figures) if bits >> at & 1]
        numbers = np.frombuffer(b"".join([rows[at][1] for at in some]), np.float64)
        found[np.ix_(some, columns)] = numbers.reshape(len(some), len(columns))
    return found


def pack_quality(pairs: Floats) -> bytes:
    """Return values and references of metrics, (n_metrics, 2), as bytes."""
    return pairs.astype(np.float64).tobytes()


def unpack_quality(rows: list[bytes], n_metrics: int) -> Floats:
    """Return values and references, (n_rows, n_metrics, 2)."""
    return np.frombuffer(b"".join(rows), np.float64).reshape(len(rows), n_metrics, 2)


def known(value: Any) -> float | None:
    """Return a number as plain data; None for NaN, and the largest float for infinity."""
    if value is None or math.isnan(value):
        return None
    return max(-LARGEST, min(LARGEST, float(value)))
