"""Numbers from decimals, which Avro and Protobuf hold as int and scale."""

from __future__ import annotations

import math


def scaled(unscaled: int, scale: int) -> float:
    """Return `unscaled / 10**scale` as the nearest float, or infinity.

    Examples
    --------
    >>> scaled(-1250, 2)
    -12.5
    """
    try:
        return unscaled / 10**scale if scale >= 0 else float(unscaled * 10**-scale)
    except OverflowError:
        return -math.inf if unscaled < 0 else math.inf
