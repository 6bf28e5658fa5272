"""Raises the error of a check that fails."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

_LONGEST = 300


class CheckFailure(AssertionError):  # noqa: N818 - a failed check is reported as one, by pytest too
    """An explainer breaks a promise.

    Parameters
    ----------
    expected
        What was promised, in words.
    seen
        What happened.
    check
        Name of the check; the check itself fills it in.
    """

    def __init__(self, expected: str, seen: str, check: str = "") -> None:
        self.expected, self.seen, self.check = expected, seen, check
        super().__init__(f"{check + ': ' if check else ''}expected {expected}; saw {seen}")


def expect(condition: bool, expected: str, seen: object) -> None:
    """Raise CheckFailure unless `condition` holds."""
    if not condition:
        raise CheckFailure(expected, seen if isinstance(seen, str) else _short(repr(seen)))


def expect_equal(wanted: Sequence[str], seen: Sequence[str], expected: str) -> None:
    """Raise CheckFailure at the first observation where two runs differ."""
    for number, (one, other) in enumerate(zip_longest(wanted, seen, fillvalue="nothing"), 1):
        if one != other:
            raise CheckFailure(expected, f"at observation {number} {_apart(one, other)}")


def _apart(one: str, other: str) -> str:
    # From a little before the first character that differs: long results are equal for most of their length.
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(same - 60, 0)
    return (
        f"{_short(one[start:])} where it was {_short(other[start:])}" if start else f"{_short(one)} and {_short(other)}"
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."
