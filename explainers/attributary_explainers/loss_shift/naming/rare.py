"""Keeps observations of rare labels, of which a sample of all has too few."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from ...core.rows import Rows
from ...missing import is_missing
from ...packing import Values, unpack_numbers
from ...typing import Features, Snapshot

LEAST_ROWS = 4
"""With fewer observations of a label on one side, it says nothing."""
_FEW = 20
"""A label is rare of which so few are to be expected in a window."""
_MOST_LABELS = 200
"""Beyond it, labels are numbers or ids: none of them is a class."""


class Stratum(NamedTuple):
    """Observations of a rare label, and its share of all observations."""

    label: Any
    share: float
    before: list[tuple[dict[Any, Any], Any]]
    after: list[tuple[dict[Any, Any], Any]]


class RareRows:
    """The newest `window` / 2 observations of rare labels.

    Parameters
    ----------
    window
        Observations of a sample of all: a label is rare of which it would have fewer than twenty.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self._counts: dict[Any, int] | None = {}
        """Observations of each label; None where there are too many labels."""
        self._n = 0
        self._rows, self._labels, self._numbers = Rows(), Values(), array("q")

    def update(self, x: Features, y: Any, number: int) -> None:
        """Take in an observation: a copy, if its label is rare so far."""
        counts = self._counts
        if counts is None:
            return
        count = counts.get(y, 0) + 1
        if count == 1 and is_missing(y):
            return
        counts[y] = count
        self._n += 1
        if len(counts) > _MOST_LABELS:
            self._counts, self._rows, self._labels, self._numbers = None, Rows(), Values(), array("q")
        elif count * self.window < _FEW * self._n:
            self._rows.append(x)
            self._labels.append(y)
            self._numbers.append(number)
            if len(self._numbers) > self.window // 2:
                self._rows.drop_first(1)
                del self._labels[:1], self._numbers[:1]

    def strata(self, is_before: Callable[[int], bool], is_after: Callable[[int], bool]) -> list[Stratum]:
        """Return the rare labels with four observations or more on each side.

        The functions say on which side an observation of a number is.
        """
        found: dict[Any, Stratum] = {}
        for x, y, number in zip(self._rows, self._labels, self._numbers, strict=True):
            count = 0 if self._counts is None else self._counts[y]
            if count * self.window >= _FEW * self._n:
                continue
            stratum = found.setdefault(y, Stratum(y, count / self._n, [], []))
            if is_before(number):
                stratum.before.append((x, y))
            elif is_after(number):
                stratum.after.append((x, y))
        return [one for one in found.values() if min(len(one.before), len(one.after)) >= LEAST_ROWS]

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "counts": None if self._counts is None else list(map(list, self._counts.items())),
            "n": self._n,
            "rows": [self._rows.snapshot(), self._labels.snapshot()],
            "numbers": self._numbers.tobytes(),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, window: int) -> Self:
        """Restore from a snapshot."""
        rare = cls(window)
        counts, (rows, labels) = snapshot["counts"], snapshot["rows"]
        rare._counts, rare._n = None if counts is None else dict(counts), snapshot["n"]
        rare._rows, rare._labels = Rows.from_snapshot(rows), Values.from_snapshot(labels)
        rare._numbers = unpack_numbers("q", snapshot["numbers"])
        return rare
