"""Makes numbers of decimals, which Avro and Protobuf hold as an integer and a scale."""

from __future__ import annotations

import math


def scaled(unscaled: int, scale: int) -> float:
    """Return the nearest number to an integer times ten to the power of minus the scale; infinity beyond all numbers.

    Examples
    --------
    >>> scaled(-1250, 2)
    -12.5
    """
    try:
        return unscaled / 10**scale if scale >= 0 else float(unscaled * 10**-scale)
    except OverflowError:
        return -math.inf if unscaled < 0 else math.inf
