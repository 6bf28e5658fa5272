"""Keeps labelled observations from before and after a loss shift."""

from __future__ import annotations

import math
from array import array
from typing import Any, Self, TypeAlias

import numpy as np

from ...core.rows import Rows
from ...packing import Values, unpack_numbers
from ...typing import Features, Snapshot
from ...validation import check_integer
from .rare import RareRows, Stratum

Row: TypeAlias = tuple[dict[Any, Any], Any]
"""An observation and its label or target."""


class KeptRows:
    """The newest observations, and a clean sample of all before them.

    The newest `window` observations wait: they may belong to a shift that is about to be reported. After that, an
    observation outside any shift may enter a uniform sample of at most `window` (Li, 1994, Algorithm L). Observations
    are numbered from 1, by the calls of `update`. Of rare labels the newest ones are kept beside these.

    Parameters
    ----------
    window
        Valid range >= 2: observations of before, and of after, that are kept at most.
    seed
        Of the sample.

    Examples
    --------
    >>> rows = KeptRows(window=2, seed=1)
    >>> for i in range(1, 6):
    ...     rows.update({"a": i}, y=0)
    >>> rows.begin(onset=5)
    >>> rows.n_missing, rows.is_due
    (1, False)
    >>> rows.update({"a": 6}, y=1)
    >>> rows.after()
    [({'a': 5}, 0), ({'a': 6}, 1)]
    >>> rows.end(returned=True)
    """

    def __init__(self, window: int, seed: int) -> None:
        self.window = check_integer("window", window, minimum=2)
        self.n = 0
        """Observations taken in."""
        self.onset: int | None = None
        """Number of the first observation after the onset of the open shift."""
        self._newest, self._newest_y = Rows(), Values()
        self._sample, self._sample_y = Rows(), Values()
        self._numbers = array("q")
        """Of the observations in the sample."""
        self._left_out = (1, 0)
        """Observations from the first to the second of these numbers belong to a shift, the last or the open one."""
        self._begin = 1
        """Number of the first observation that may enter the reference."""
        self._rng = np.random.default_rng(seed)
        self._rare = RareRows(window)
        self._wait, self._weight = 0, 1.0
        """Observations that Algorithm L passes over before the next one enters, and its W."""

    def update(self, x: Features, y: Any) -> None:
        """Take in a copy; offer the oldest waiting observation to the sample."""
        newest, targets = self._newest, self._newest_y
        newest.append(x)
        targets.append(y)
        self.n += 1
        self._rare.update(x, y, self.n)
        if len(newest) <= self.window:
            return
        oldest = self.n - self.window
        if self._is_clean(oldest):
            if self._wait > 0 and len(self._sample) == self.window:
                self._wait -= 1
            else:
                self._enter(targets[0], oldest)
        newest.drop_first(1)
        del targets[:1]

    def _is_clean(self, number: int) -> bool:
        first, last = self._left_out
        return number >= self._begin and not first <= number <= last

    def _enter(self, y: Any, number: int) -> None:
        """Let the oldest of the newest observations enter the sample."""
        if len(self._sample) < self.window:
            self._sample.put_from(len(self._sample), self._newest, 0)
            self._sample_y.append(y)
            self._numbers.append(number)
            if len(self._sample) < self.window or self._weight < 1.0:
                return
        else:
            slot = int(self._rng.integers(self.window))
            self._sample.put_from(slot, self._newest, 0)
            self._sample_y[slot], self._numbers[slot] = y, number
        first, second = np.log(1.0 - self._rng.random(2)).tolist()
        self._weight = min(self._weight * math.exp(first / self.window), 1.0 - 1e-9)
        self._wait = int(second / math.log1p(-self._weight))

    def begin(self, onset: int) -> None:
        """Set the reference aside for a shift that began at number `onset`.

        A new shift that begins while one is open takes its place; what the first one left out stays out.
        """
        first, last = self._left_out
        self.onset = max(1, min(onset, self.n + 1))
        # Of what is left out one interval is kept: what was clean for a moment between two shifts is left out, too.
        waiting = first <= last and last > self.n - self.window
        self._left_out = (min(first, self.onset) if waiting else self.onset, _NEVER)
        clean = [i for i, number in enumerate(self._numbers) if number < self.onset]
        if len(clean) < len(self._numbers):
            self._sample = Rows([self._sample[i] for i in clean])
            self._sample_y = Values(self._sample_y[i] for i in clean)
            self._numbers = array("q", [self._numbers[i] for i in clean])

    @property
    def n_missing(self) -> int:
        """Observations that the window after an open shift's onset still lacks."""
        return 0 if self.onset is None else max(0, self.onset + self.window - 1 - self.n)

    @property
    def is_due(self) -> bool:
        """Whether the window after the onset of an open shift is full."""
        return self.onset is not None and self.n_missing == 0

    def before(self) -> list[Row]:
        """Return the reference: the sample, filled up with waiting rows."""
        oldest = self.n - len(self._newest) + 1
        end = self.n + 1 if self.onset is None else self.onset
        newest = zip(self._newest, self._newest_y, strict=True)
        waiting = [row for i, row in enumerate(newest) if oldest + i < end and self._is_clean(oldest + i)]
        sample = list(zip(self._sample, self._sample_y, strict=True))
        return sample + waiting[: self.window - len(sample)]

    def after(self) -> list[Row]:
        """Return the newest observations since the onset; none without a shift."""
        if self.onset is None:
            return []
        first = max(0, self.onset - (self.n - len(self._newest) + 1))
        return list(zip(self._newest[first:], self._newest_y[first:], strict=True))

    def rare(self) -> list[Stratum]:
        """Return the observations of rare labels before and since the onset."""
        onset = self.onset
        return [] if onset is None else self._rare.strata(self._is_clean, lambda number: number >= onset)

    def end(self, *, returned: bool) -> None:
        """Close the shift; keep the reference, or restart it at the onset.

        Parameters
        ----------
        returned
            Whether the loss is where it was. What came between stays left out.
        """
        if self.onset is None:
            return
        if returned:
            self._left_out = (self._left_out[0], self.n)
        else:
            self._begin, self._left_out = self.onset, (1, 0)
            self._sample, self._sample_y, self._numbers = Rows(), Values(), array("q")
            self._wait, self._weight = 0, 1.0
        self.onset = None

    def snapshot(self) -> Snapshot:
        """Return exact plain data to restore from; floats take 8 bytes each."""
        return {
            "window": self.window,
            "n": self.n,
            "onset": self.onset,
            "newest": [self._newest.snapshot(), self._newest_y.snapshot()],
            "sample": [self._sample.snapshot(), self._sample_y.snapshot()],
            "numbers": self._numbers.tobytes(),
            "rare": self._rare.snapshot(),
            "left_out": list(self._left_out),
            "begin": self._begin,
            "generator": self._rng.bit_generator.state,
            "wait": self._wait,
            "weight": self._weight,
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Return the rows that the snapshot was taken of."""
        rows = cls(snapshot["window"], seed=0)
        rows.n, rows.onset = snapshot["n"], snapshot["onset"]
        (newest, of_newest), (sample, of_sample) = snapshot["newest"], snapshot["sample"]
        rows._newest, rows._sample = Rows.from_snapshot(newest), Rows.from_snapshot(sample)
        rows._newest_y, rows._sample_y = Values.from_snapshot(of_newest), Values.from_snapshot(of_sample)
        rows._numbers = unpack_numbers("q", snapshot["numbers"])
        if "rare" in snapshot:
            rows._rare = RareRows.from_snapshot(snapshot["rare"], rows.window)
        first, last = snapshot["left_out"]
        rows._left_out, rows._begin = (first, last), snapshot["begin"]
        rows._rng.bit_generator.state = snapshot["generator"]
        rows._wait, rows._weight = snapshot["wait"], snapshot["weight"]
        return rows


_NEVER = 2**62
