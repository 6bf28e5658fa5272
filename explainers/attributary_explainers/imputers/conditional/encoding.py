"""Feature values as the trees read them: floats or category numbers."""

from __future__ import annotations

import math
from collections.abc import Hashable
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

from ...missing import is_missing

Code: TypeAlias = float | int
"""A value as trees read it: a float of a numeric feature, the number of a category of a nominal one."""

OTHER = -1
"""The number that all categories share that have no number of their own."""


def says_nothing(value: Any) -> bool:
    """Return whether a value is missing, or is no category for lack of a hash."""
    return is_missing(value) or not isinstance(value, Hashable)


def is_number(value: Any) -> bool:
    """Return whether a first value makes its feature numeric; no bool does."""
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


class Numeric:
    """Encodes numbers as floats; anything else, and infinity, has no code."""

    def learn(self, value: Any, now: int) -> float | None:
        """Return the code of an observed value, or None."""
        return self.code(value)

    def code(self, value: Any) -> float | None:
        """Return the code of a value, or None."""
        if not isinstance(value, (Real, Decimal)):
            return None
        try:
            number = float(value)
        except (OverflowError, ValueError):  # as above
            return None
        return number if math.isfinite(number) else None


class Nominal:
    """Numbers categories from 0 to `max_categories` - 1, by first arrival.

    River's trees sort what they split on, and can sort numbers, but not categories of mixed types. And numbers are
    bounded: once all are in use, a new category takes the number of the one not seen for longest, if that was more
    than `forget_after` observations ago; otherwise it shares `OTHER` with all further ones. Categories are told apart
    as a dict does: 1, 1.0 and True are one.

    Parameters
    ----------
    max_categories
        Valid range >= 1. Larger tells more categories apart and costs memory in every tree.
    forget_after
        Valid range >= 1, in observations. Larger keeps the number of a rare category for longer.

    Examples
    --------
    >>> colours = Nominal(max_categories=2, forget_after=100)
    >>> [colours.learn(value, now) for now, value in enumerate(["red", "blue", "green", "red"])]
    [0, 1, -1, 0]
    >>> colours.learn("green", now=150)  # nothing else was seen since 3
    1
    """

    def __init__(self, max_categories: int, forget_after: int) -> None:
        self.max_categories = max_categories
        self.forget_after = forget_after
        # Category to its number and when it was last seen; the one not seen for longest comes first.
        self._numbers: dict[Any, tuple[int, int]] = {}

    def learn(self, value: Any, now: int) -> int | None:
        """Return a category's number, new if any is left; None for missing.

        `OTHER` where no number is left.
        """
        if says_nothing(value):
            return None
        known = self._numbers.pop(value, None)
        if known is not None:
            number = known[0]
        elif len(self._numbers) < self.max_categories:
            number = len(self._numbers)
        else:
            oldest = next(iter(self._numbers))
            number, last_seen = self._numbers[oldest]
            if now - last_seen <= self.forget_after:
                return OTHER
            del self._numbers[oldest]
        self._numbers[value] = (number, now)
        return number

    def code(self, value: Any) -> int | None:
        """Return a category's number, `OTHER` if it has none, None if missing."""
        return None if says_nothing(value) else self._numbers.get(value, (OTHER, 0))[0]
