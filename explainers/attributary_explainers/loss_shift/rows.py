"""Keeps labelled observations from before and after a loss shift."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..core.rows import Rows
from ..missing import is_missing
from ..snapshots import Stored
from ..typing import Features
from ..validation import check_integer
from ..values import Values

Row: TypeAlias = tuple[dict[Any, Any], Any]
"""An observation and its label or target."""
_NEVER = 2**62
LEAST_OF_RARE = 4
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


class RareRows(Stored):
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
        return [one for one in found.values() if min(len(one.before), len(one.after)) >= LEAST_OF_RARE]


class KeptRows(Stored):
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
