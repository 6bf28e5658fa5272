"""Reservoirs: bounded storages of past observations that removed features are replaced from (iPFI section 3.1)."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import numpy as np

from ..errors import SnapshotError
from ..typing import Features, Snapshot
from ..validation import check_choice, check_integer


class Reservoir(abc.ABC):
    """Stores at most `size` past observations, each of which is equally likely to be drawn.

    `update` is called once per observation, after the explainer has drawn: a draw never sees the observation
    that is being explained. Rows are copied in, so that the caller's dicts are neither kept nor changed.
    What is drawn is the stored row itself: callers only read it.

    Parameters
    ----------
    size
        Valid range >= 1; number of rows (L in the papers). Larger lowers the variance of importance and
        costs memory; for the geometric reservoir it also lengthens the memory, whose mean age is `size`.
    """

    name: ClassVar[str]

    def __init__(self, size: int = 100) -> None:
        self.size = check_integer("size", size, minimum=1)
        self.rows: list[dict[Any, Any]] = []
        self.n_seen = 0

    def __len__(self) -> int:
        return len(self.rows)

    def update(self, x: Features, rng: np.random.Generator) -> int | None:
        """Take in one observation; return the slot that holds it now, or None where it was not taken.

        Parameters
        ----------
        x
            The features of one observation; copied.
        rng
            The explainer's generator.
        """
        self.n_seen += 1
        if len(self.rows) < self.size:
            self.rows.append(dict(x))
            return len(self.rows) - 1
        slot = self._slot(rng)
        if slot is not None:
            self.rows[slot] = dict(x)
        return slot

    @abc.abstractmethod
    def _slot(self, rng: np.random.Generator) -> int | None:
        """Return the slot that the newest observation takes, or None to leave the full reservoir as it is."""

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "name": self.name,
            "size": self.size,
            "n_seen": self.n_seen,
            "rows": [dict(r) for r in self.rows],
        }

    @staticmethod
    def from_snapshot(snapshot: Snapshot) -> Reservoir:
        """Return a reservoir like the one that the snapshot was taken of."""
        if snapshot["name"] not in _RESERVOIRS:
            raise SnapshotError(f"unknown reservoir {snapshot['name']!r}: update attributary, or reset the explainer")
        reservoir = _RESERVOIRS[snapshot["name"]](snapshot["size"])
        reservoir.restore(snapshot)
        return reservoir

    def restore(self, snapshot: Snapshot) -> None:
        """Take the state of a reservoir of this class and size."""
        if snapshot["name"] != self.name:
            raise SnapshotError(
                f"expected the reservoir {self.name!r}, got {snapshot['name']!r}: update attributary, or reset the "
                "explainer"
            )
        self.n_seen = snapshot["n_seen"]
        self.rows = [dict(row) for row in snapshot["rows"]]


class UniformReservoir(Reservoir):
    """Stores every past observation with the same probability: Vitter's reservoir (iPFI section 3.1.1).

    It remembers for ever, and is fit for streams without drift. Source: J. S. Vitter, Random Sampling with a
    Reservoir, 1985, Algorithm R.

    Examples
    --------
    >>> import numpy as np
    >>> reservoir, rng = UniformReservoir(2), np.random.default_rng(1)
    >>> for i in range(100):
    ...     slot = reservoir.update({"i": i}, rng)
    >>> len(reservoir), reservoir.n_seen
    (2, 100)
    """

    name = "uniform"

    def _slot(self, rng: np.random.Generator) -> int | None:
        slot = int(rng.integers(self.n_seen))
        return slot if slot < self.size else None


class GeometricReservoir(Reservoir):
    """Stores every observation in a uniformly drawn slot (iPFI section 3.1.2, iSAGE Algorithm 2).

    Once full, the probability to draw at time s the observation of time r is p (1 - p)^(s - r - 1) with
    p = 1 / size: recent observations are likelier, their mean age is about `size`. The first `size` rows fill
    it (the paper's line 4 must read |R| < L).

    Examples
    --------
    >>> import numpy as np
    >>> reservoir, rng = GeometricReservoir(3), np.random.default_rng(1)
    >>> for i in range(100):
    ...     slot = reservoir.update({"i": i}, rng)
    >>> 99 in [row["i"] for row in reservoir.rows]
    True
    """

    name = "geometric"

    def _slot(self, rng: np.random.Generator) -> int | None:
        return int(rng.integers(self.size))


class SlidingWindowReservoir(Reservoir):
    """Stores exactly the last `size` observations: nothing is left to chance, and what is older is forgotten at once.

    It is fit where the features drift and where drawn rows are to be of a known age. The geometric reservoir, which
    keeps some older rows, needs the same memory.

    Examples
    --------
    >>> import numpy as np
    >>> reservoir, rng = SlidingWindowReservoir(3), np.random.default_rng(1)
    >>> for i in range(100):
    ...     slot = reservoir.update({"i": i}, rng)
    >>> sorted(row["i"] for row in reservoir.rows)
    [97, 98, 99]
    """

    name = "sliding_window"

    def _slot(self, rng: np.random.Generator) -> int | None:
        return (self.n_seen - 1) % self.size


_RESERVOIRS: dict[str, type[Reservoir]] = {
    c.name: c for c in (UniformReservoir, GeometricReservoir, SlidingWindowReservoir)
}

RESERVOIR_NAMES = tuple(_RESERVOIRS)
"""Names that `make_reservoir` knows."""


def make_reservoir(name: str, size: int) -> Reservoir:
    """Return a new reservoir by name: `uniform`, `geometric` or `sliding_window`."""
    return _RESERVOIRS[check_choice("reservoir", name, RESERVOIR_NAMES)](size)
