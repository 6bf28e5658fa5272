"""The stored rows of an exhaustive search as arrays, and a kernel that finds the nearest to many rows at once."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiled import compiled
from ..evaluation.evaluator import NotCoveredError
from ..evaluation.schema import NotEncodableError, Schema
from ..typing import Array, Ints


class Window:
    """Keeps the stored rows of a `LazySearch` as an array, in step with the live window.

    Squares are summed in the order of the features in the newest stored row: that of the stream, and the one in which
    River sums them. So rows at the same distance stay rows at the same distance, of which the older one is nearer.
    """

    def __init__(self, schema: Schema, number: Callable[[Any], float]) -> None:
        self.schema = schema
        self.columns: Array = np.empty((len(schema), 0))
        """The rows as columns: a ring, of which `head` is the oldest."""
        self.targets: Array = np.empty(0)
        """The targets of the rows, as numbers."""
        self._number = number
        self.order: Ints = np.arange(len(schema))
        self.head = 0
        self._items: deque[Any] = deque()
        self._names: list[Any] = []

    def __len__(self) -> int:
        return len(self._items)

    def follow(self, live: deque[Any]) -> None:
        """Take over the rows that are new in the live window.

        Raises
        ------
        NotCoveredError
            A stored row has other features, or a value that is no number.
        """
        items = self._items
        if not live and not items:
            return
        if items and live and live[-1] is items[-1] and live[0] is items[0] and len(live) == len(items):
            return
        new: list[Any] = []
        last = items[-1] if items else None
        for item in reversed(live):
            if item is last:
                break
            new.append(item)
        if len(new) == len(live) or live.maxlen != items.maxlen:
            self._start(live)
            return
        new.reverse()
        self._add(new)
        if len(live) != len(items) or live[0] is not items[0]:
            self._start(live)

    def _start(self, live: deque[Any]) -> None:
        if not live.maxlen:
            raise NotCoveredError("a window without a size")
        self._items = deque(maxlen=live.maxlen)
        self.columns = np.empty((len(self.schema), live.maxlen))
        self.targets = np.empty(live.maxlen)
        self.head = 0
        self._add(list(live))

    def _add(self, new: Sequence[Any]) -> None:
        if not new:
            return
        try:
            rows = self.schema.encode_many([self._filled(item[0][0]) for item in new])
        except NotEncodableError as error:
            # It is met again at the next call, until it is gone: as it would be by a new evaluator.
            raise NotCoveredError(f"a stored row: {error}") from None
        capacity = len(self.targets)
        for item, row in zip(new, rows, strict=True):
            at = (self.head + len(self._items)) % capacity
            if len(self._items) == capacity:
                self.head = (self.head + 1) % capacity
            self._items.append(item)
            self.columns[:, at] = row
            self.targets[at] = self._number(item[0][1])
        names = list(new[-1][0][0])
        if names != self._names:
            self._names = names
            order = dict.fromkeys([*names, *self.schema.features])
            self.order = np.array([self.schema.position[name] for name in order])

    def _filled(self, x: Any) -> Any:
        """Return a stored row with 0 for each feature that it lacks, as River counts it."""
        keys = self.schema.keys
        return x if x.keys() == keys or not x.keys() <= keys else {**dict.fromkeys(keys, 0.0), **x}

    def nearest(self, X: Array, k: int) -> tuple[Ints, Array]:
        """Return the positions in the ring, and the distances, of each row's neighbours; shape (rows, neighbours)."""
        n = len(self)
        found = np.empty((len(X), min(k, n)), dtype=np.int64)
        distances = np.empty(found.shape)
        _nearest(X, self.columns, self.order, self.head, n, found, distances)
        return found, distances


_ROOM = 1.0 - 1e-12


@compiled
def _square(X: Array, r: int, columns: Array, order: Ints, i: int) -> float:
    total = 0.0
    for j in order:
        difference = X[r, j] - columns[j, i]
        total += difference * difference
    return total


@compiled
def _squares(X: Array, r: int, columns: Array, order: Ints, squares: Array) -> None:
    n = squares.shape[0]
    squares[:] = 0.0
    for j in order:
        x, column = X[r, j], columns[j]
        for i in range(n):
            difference = x - column[i]
            squares[i] += difference * difference


@compiled
def _nearest(X: Array, columns: Array, order: Ints, head: int, n: int, found: Ints, distances: Array) -> None:
    """Find the neighbours of each row; most rows differ from the first one in few columns.

    The squares of the first row, corrected for those columns, leave out what cannot be near, with room for rounding;
    what remains is computed as for the first row.
    """
    d, capacity = columns.shape
    k = found.shape[1]
    first = np.empty(n)  # squares of the first row
    least = np.empty(n)  # of this row: not more than its squares, or just these
    changed = np.empty(d, dtype=np.int64)
    _squares(X, 0, columns, order, first)
    for r in range(X.shape[0]):
        n_changed = 0
        for j in range(d):
            if X[r, j] != X[0, j]:
                changed[n_changed] = j
                n_changed += 1
        exact = r == 0 or 2 * n_changed > d
        if exact:
            _squares(X, r, columns, order, least)
        else:
            for i in range(n):
                least[i] = first[i] * _ROOM
            for c in range(n_changed):
                j = changed[c]
                now, before, column = X[r, j], X[0, j], columns[j]
                for i in range(n):
                    one, other = now - column[i], before - column[i]
                    least[i] += one * one * _ROOM - other * other
        limit = np.inf
        if not exact and k < n:  # the neighbours of the first row are at most this far
            limit = 0.0
            for q in range(k):
                limit = max(limit, _square(X, r, columns, order, found[0, q]))
        kept = 0
        for age in range(n):
            i = head + age
            if i >= capacity:
                i -= capacity
            if least[i] > limit:
                continue
            square = least[i] if exact else _square(X, r, columns, order, i)
            # River compares the roots: different squares may have the same one.
            distance = math.sqrt(square)
            if kept < k:
                q = kept
                kept += 1
            elif distance < distances[r, k - 1]:
                q = k - 1
            else:
                continue
            while q > 0 and distances[r, q - 1] > distance:
                distances[r, q] = distances[r, q - 1]
                found[r, q] = found[r, q - 1]
                q -= 1
            distances[r, q] = distance
            found[r, q] = i
            if kept == k:
                limit = min(limit, distances[r, k - 1] * distances[r, k - 1] * (2.0 - _ROOM))
