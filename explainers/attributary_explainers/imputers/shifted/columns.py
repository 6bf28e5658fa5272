"""Columns of features: a number's value and its hinges, a category's indicators, and products of two columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled

VALUE, HINGE, LEVEL, PRODUCT = range(4)
"""Kinds of columns."""


@compiled
def expand(x: Any, kind: Any, of: Any, number: Any, other: Any, center: Any, scale: Any, out: Any) -> None:
    """Write the columns of one observation; those of a missing feature, which is NaN in x, are NaN.

    Parameters
    ----------
    x
        Shape (features,): numbers, and the numbers of categories' levels.
    kind, of
        Shape (columns,): what a column is, and the feature it is of.
    number
        The knot of a hinge, in units of the scaled value; the level of an indicator; the first column of a product.
    other
        The second column of a product.
    center, scale
        Shape (features,): a number becomes (x - center) / scale.
    """
    for c in range(len(kind)):
        j = of[c]
        if kind[c] == PRODUCT:
            out[c] = out[int(number[c])] * out[other[c]]
        elif np.isnan(x[j]):
            out[c] = np.nan
        elif kind[c] == LEVEL:
            out[c] = 1.0 if x[j] == number[c] else 0.0
        else:
            z = (x[j] - center[j]) / scale[j]
            out[c] = z if kind[c] == VALUE else max(z - number[c], 0.0)
