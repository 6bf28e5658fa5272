"""One update of all curves: the rows it is made of, drawn once for all, and the questions that are still open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...typing import Array, Ints, Snapshot
from .asking import AskedModel
from .curve import Block, Curve, Evaluated


class Round:
    """An update of all curves, in steps that ask the model about a bounded number of rows each.

    First come the rows of the block as they are. Then the features take turns: the rows of one are asked at all its
    points and its curve is updated, before the next one begins. The rows are the same for all: the probe, and those
    drawn from the block.

    Parameters
    ----------
    block
        The observations since the last round, still without predictions. May be none; then the curves are carried over
        only.
    probe
        Rows that were asked in the last round.
    drawn, shares
        New rows: which of the block, and with which weights.
    slots
        Which row of the probe a new row becomes, -1 for none.
    plan
        By feature: the points to ask at, and those of the grid from now on.
    """

    def __init__(
        self,
        block: Block,
        probe: list[dict[Any, Any]],
        drawn: Ints,
        shares: Array,
        slots: Ints,
        plan: list[tuple[Any, list[Any], list[Any]]],
    ) -> None:
        self._block, self._probe, self._plan = block, probe, plan
        self._drawn, self._shares, self._slots = drawn, shares, slots
        self._rows = [*probe, *(block.rows[i] for i in drawn.tolist())]
        self._done: list[Array] = []  # predictions for the first rows, of the feature whose turn it is

    @property
    def n_open(self) -> int:
        """Evaluations that are still open, where every row has every feature."""
        n = sum(len(self._rows) * len(points) for _, points, _ in self._plan)
        n -= sum(part.size for part in self._done)
        return n + len(self._block.rows) - len(self._block.predictions)

    @property
    def n_rows(self) -> int:
        """Rows that are asked at all points of a feature."""
        return len(self._rows)

    @property
    def is_done(self) -> bool:
        """Whether every curve has been updated."""
        return not self._plan

    def forget(self, name: Any) -> None:
        """Leave out a feature."""
        if self._plan and self._plan[0][0] == name:
            self._done = []
        self._plan = [turn for turn in self._plan if turn[0] != name]

    def next_probe(self) -> list[dict[Any, Any]]:
        """Return the probe rows of the next round."""
        probe = [*self._probe, *({} for _ in range(self._n_probe - len(self._probe)))]
        for row, slot in zip(self._drawn.tolist(), self._slots.tolist(), strict=True):
            if slot >= 0:
                probe[slot] = self._block.rows[row]
        return probe

    @property
    def _n_probe(self) -> int:
        return max(len(self._probe), int(self._slots.max(initial=-1)) + 1)

    def step(self, curves: Mapping[Any, Curve], n: int, model: AskedModel, n_ice: int) -> Iterator[tuple[Any, int]]:
        """Ask for about `n` predictions, at most a row's more; yield feature and rows left out for each curve updated.

        Parameters
        ----------
        n
            From 1 on; turns that need no prediction are taken too.
        """
        block = self._block
        n_known = len(block.predictions)
        if n_known < len(block.rows):
            more = block.rows[n_known : n_known + n]
            block.predictions = np.concatenate([block.predictions, model.rows(more)])
            n -= len(more)
        while n > 0 and self._plan:
            name, points, grid = self._plan[0]
            first = sum(map(len, self._done))
            rows = self._rows[first : first + -(-n // len(points))]
            n -= len(rows) * len(points)
            self._done.append(_asked(curves[name], rows, name, points, model))
            if first + len(rows) < len(self._rows):
                continue
            predictions, n_probe = np.concatenate(self._done), len(self._probe)
            found = Evaluated(
                points, predictions[:n_probe], predictions[n_probe:], self._shares, self._drawn, self._slots
            )
            self._plan, self._done = self._plan[1:], []
            yield name, curves[name].update(name, found, grid, block, self._n_probe, n_ice)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "rows": list(map(dict, self._block.rows)),
            "predictions": self._block.predictions.tobytes(),
            "probe": list(map(dict, self._probe)),
            "drawn": self._drawn.tolist(),
            "shares": self._shares.tolist(),
            "slots": self._slots.tolist(),
            "plan": [(name, list(points), list(grid)) for name, points, grid in self._plan],
            "done": [(len(part), part.tobytes()) for part in self._done],
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, alpha: float) -> Round:
        """Return the round that the snapshot was taken of."""
        made = cls(
            Block(list(map(dict, snapshot["rows"])), np.frombuffer(snapshot["predictions"]), alpha),
            list(map(dict, snapshot["probe"])),
            np.array(snapshot["drawn"], dtype=np.int64),
            np.array(snapshot["shares"], dtype=np.float64),
            np.array(snapshot["slots"], dtype=np.int64),
            [(name, list(points), list(grid)) for name, points, grid in snapshot["plan"]],
        )
        made._done = [np.frombuffer(data).reshape(n, -1) for n, data in snapshot["done"]]
        return made


def _asked(curve: Curve, rows: list[dict[Any, Any]], name: Any, points: list[Any], model: AskedModel) -> Array:
    found = np.full((len(rows), len(points)), np.nan)
    those = [i for i, row in enumerate(rows) if curve.value_of(row, name) is not None]
    if those:
        found[those] = model.grid([rows[i] for i in those], name, points)
    return found


def draw_rows(weights: Array, n: int, rng: np.random.Generator) -> tuple[Ints, Array]:
    """Draw about `n` rows of a block by their weights; return which, ascending, and the weight of each.

    All rows where there are no more than `n`, with their own weights. Else one out of each of `n` strata of equal
    weight; one that is drawn twice counts twice.
    """
    if len(weights) <= n:
        return np.arange(len(weights)), weights
    upto = np.cumsum(weights)
    places = (np.arange(n) + rng.random(n)) / n * upto[-1]
    rows, counts = np.unique(np.searchsorted(upto, places, side="right").clip(max=len(weights) - 1), return_counts=True)
    return rows, counts.astype(np.float64)


def draw_slots(n_new: int, n_probe: int, size: int, chance: float, rng: np.random.Generator) -> Ints:
    """Return the probe row that each new row becomes, -1 for none.

    Parameters
    ----------
    n_probe, size
        Rows in the probe, and how many it may have: free places are taken first.
    chance
        Of a new row to take the place of another, once no place is free.
    """
    slots = np.full(n_new, -1)
    n_free = min(size - n_probe, n_new)
    slots[:n_free] = np.arange(n_probe, n_probe + n_free)
    places = rng.permutation(n_probe)[: n_new - n_free]
    others = slice(n_free, n_free + len(places))
    slots[others] = np.where(rng.random(len(places)) < chance, places, -1)
    return slots
