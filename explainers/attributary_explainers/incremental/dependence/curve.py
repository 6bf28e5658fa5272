"""A feature's curve: mean predictions on a grid, kept up to date."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, TypeAlias

import numpy as np

from ...core.dependence import CategoryValues, NumberValues, fitting_of
from ...typing import Array, Ints, Snapshot

Line: TypeAlias = tuple[list[Any], list[float]]
"""Grid values and, for each, a prediction or mean prediction."""


_FEWEST = 10  # rows of which a slope is made
_STEEPEST = 1e6  # slope or ratio of variances that is believed


@dataclass
class Evaluated:
    """A feature's predictions at grid points, for probe and new rows."""

    points: list[Any]
    """Values that the feature was set to: those of the old grid and of the new one."""
    probe: Array
    """Shape (probe rows, points): predictions for rows that were asked at the last update too; NaN: none."""
    new: Array
    """Shape (new rows, points): predictions for rows drawn from those that came since."""
    shares: Array
    """Shape (new rows,): weight of each new row."""
    drawn: Ints
    """Shape (new rows,): which of the block each new row is."""
    slots: Ints
    """Shape (new rows,): the probe row that a new row becomes; -1 for none."""


@dataclass
class Block:
    """Observations since the last update, with the model's predictions."""

    rows: list[dict[Any, Any]]
    predictions: Array
    """Shape (rows,); NaN: none."""
    alpha: float

    @cached_property
    def weights(self) -> Array:
        """Smoothing weights (1 - alpha)^age, shape (rows,)."""
        found: Array = (1.0 - self.alpha) ** np.arange(len(self.rows) - 1, -1, -1, dtype=np.float64)
        return found


class Curve:
    """Grid and means of a feature.

    With M(g) the mean at grid point g, an update with the current model h does three things:

    - Carry: M(g) = mean over the probe rows of h(x[j := g]) - b (mean over them of h_then(x[j := g]) - M(g)), h_then
      their predictions at the last update and b the slope of h by h_then (the regression estimator of sampling on
      successive occasions). A model that has not changed has b = 1 and adds exactly 0; of one that has nothing in
      common with what it was, b = 0, the mean over the probe rows is what there is.
    - Move, if the grid is a new one: a point's mean is that of the nearest old point plus the mean over all rows of
      h(x[j := new]) - h(x[j := old]).
    - Add: the new rows' mean, with the control variate u = h(x_t) - M(x_tj), whose mean over the whole block is
      known: m(g) = mean over new rows of (h(x[j := g]) - b u) + b (mean over the block of u), b in [0, 1] the slope of
      h(x[j := g]) by u (the regression estimator of survey sampling). It is right for any u, and where the model is
      additive in j all rows of the block count.

    The weight of the carried mean is what it is as precise as: w / (r2 + w v / s), and w at most, with v the variance
    that carrying and moving have added, s that of one observation, and r2 the share of the variance of h between the
    probe rows that goes with h_then. A mean that hangs on a hundred probe rows after the model has jumped does not
    outweigh the rows that come.
    """

    def __init__(self, values: NumberValues | CategoryValues) -> None:
        self.values = values
        self.grid: list[Any] = []
        self.means: Array = np.zeros(0)
        self.known = False
        """Whether there is a mean at each grid point."""
        self.weight = 0.0
        """Observations that the means count for."""
        self.spread = 0.0
        """Variance of a mean that counts for one observation."""
        self.followed = 1.0
        """Share of the variance between the probe rows that goes with their predictions at the update before."""
        self.probe: Array = np.zeros((0, 0))
        """Shape (probe rows, grid): predictions at the last update, NaN: none."""
        self.ice: list[Line] = []

    def line(self, *, is_probability: bool = False) -> Line:
        """Return grid and means, which must be known.

        What is carried over has noise, which may lead out of the range of a probability: it is cut there.
        """
        means = np.clip(self.means, 0.0, 1.0) if is_probability else self.means
        return self.grid.copy(), means.tolist()

    def update(self, name: Any, found: Evaluated, grid: list[Any], block: Block, n_probe: int, n_ice: int) -> int:
        """Take in predictions; return how many rows were of no use.

        The predictions are at the points of the old grid and of `grid`, the new one. Return the number of the block's
        rows with an unusable prediction. `n_probe` is the number of probe rows from now on.
        """
        place = {point: i for i, point in enumerate(found.points)}
        noise = self._carry(found, [place[point] for point in self.grid])
        columns = [place[point] for point in grid]
        noise += self._move(found, grid, columns, place)
        new = np.ascontiguousarray(found.new[:, columns])
        missing = self._add(name, new, found, block, noise)
        self.probe = np.full((n_probe, len(grid)), np.nan)
        self.probe[: len(found.probe)] = found.probe[:, columns]
        kept = found.slots >= 0
        self.probe[found.slots[kept]] = new[kept]
        if n_ice:
            lines = [(list(grid), line) for line in new[np.isfinite(new).all(axis=1)].tolist()]
            self.ice = [*self.ice, *lines][-n_ice:]
        return missing

    def _carry(self, found: Evaluated, columns: list[int]) -> float:
        """Carry the means over to the current model; return the added variance."""
        n = min(len(self.probe), len(found.probe)) if self.known else 0
        if not n:
            return 0.0
        then, now = self.probe[:n], found.probe[:n, columns]
        usable = np.isfinite(now - then).all(axis=1)
        then, now = then[usable], now[usable]
        if not len(then):
            return 0.0
        changes = now - then
        slopes = _slopes(then, changes)
        before, after = _variance(then), _variance(now)
        if before > 0.0 and after / before <= _STEEPEST:
            self.spread *= after / before
        self.means = self.means + changes.mean(axis=0) - slopes * (then.mean(axis=0) - self.means)
        changes = changes - slopes * then
        self.followed = max(1.0 - _variance(changes) / after, 0.0) if after > 0.0 else 1.0
        return _mean_variance(changes)

    def _move(self, found: Evaluated, grid: list[Any], columns: list[int], place: dict[Any, int]) -> float:
        """Move to a grid; return the variance that this adds."""
        old, self.grid = self.grid, list(grid)
        if grid == old:
            return 0.0
        rows = np.concatenate([found.probe, found.new])
        rows = rows[np.isfinite(rows).all(axis=1)]
        if not self.known or not len(rows):
            self.means, self.known, self.weight = np.zeros(len(grid)), False, 0.0
            return 0.0
        nearest = [self._nearest(point, old) for point in grid]
        steps = rows[:, columns] - rows[:, [place[old[i]] for i in nearest]]
        self.means = self.means[nearest] + steps.mean(axis=0)
        return _mean_variance(steps)

    def _nearest(self, point: Any, old: list[Any]) -> int:
        if point in old or not self.values.numeric:
            return old.index(point) if point in old else 0
        return min(range(len(old)), key=lambda i: abs(old[i] - point))

    def _add(self, name: Any, new: Array, found: Evaluated, block: Block, noise: float) -> int:
        values = fitting_of(block.rows, name, self.values.numeric)
        has_value = np.array([value is not None for value in values], dtype=bool)
        there = has_value & np.isfinite(block.predictions)
        answered = np.isfinite(new).all(axis=1)
        usable = answered & there[found.drawn] & (found.shares > 0.0)
        missing = int(has_value.sum()) - int(there.sum()) + int((there[found.drawn] & ~answered).sum())
        self.weight *= (1.0 - block.alpha) ** len(values)
        weights = np.where(there, block.weights, 0.0)
        count = float(weights.sum())
        if not usable.any():
            self._discount(noise)
            return missing
        weights, shares = weights / count, found.shares[usable] / found.shares[usable].sum()
        new, drawn = new[usable], found.drawn[usable]
        plain = new[0] + shares @ (new - new[0])  # so that equal predictions have exactly their mean
        u = np.zeros(len(values))
        u[there] = block.predictions[there]
        those = values if there.all() else list(compress(values, there.tolist()))
        u[there] -= self._at(those, self.means if self.known else plain)
        factor = _slope(u[drawn], new)
        means = plain + factor * float(weights @ u - shares @ u[drawn])
        # The variance that the block's mean has: all rows were drawn by the stream, and of them some were asked.
        part, whole = float((shares**2).sum()), float((weights**2).sum())
        if len(new) > 1:
            residuals = new - factor * u[drawn, None]
            spread = count * (whole * _variance(new) + max(part - whole, 0.0) * _variance(residuals))
            self.spread = (self.weight * self.spread + count * spread) / (self.weight + count)
        self._discount(noise)
        self.means = self.means + count / (self.weight + count) * (means - self.means)
        self.known, self.weight = True, self.weight + count
        return missing

    def _discount(self, noise: float) -> None:
        """Lower the means' weight to as many rows as they are as precise as."""
        lost = self.weight * noise
        if lost > 0.0:
            self.weight *= self.spread / max(self.spread, self.followed * self.spread + lost)

    def _at(self, values: list[Any], means: Array) -> Array:
        """Return the curve at observed values, linear between grid points."""
        if self.values.numeric:
            at = np.array(values, dtype=np.float64)
            grid = np.array(self.grid, dtype=np.float64)
            found: Array = np.interp(at, grid, means)
            return np.where(np.isfinite(found), found, means.mean())
        place = {point: i for i, point in enumerate(self.grid)}
        other = float(means.mean())
        return np.array([float(means[place[value]]) if value in place else other for value in values])

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {
            "numeric": self.values.numeric,
            "values": self.values.snapshot(),
            "grid": list(self.grid),
            "means": self.means.tolist(),
            "known": self.known,
            "weight": self.weight,
            "spread": self.spread,
            "followed": self.followed,
            "probe": [len(self.probe), self.probe.tobytes()],
            "ice": [(list(grid), list(line)) for grid, line in self.ice],
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Take the state of a snapshot."""
        self.values.restore(snapshot["values"])
        self.grid, self.means = list(snapshot["grid"]), np.array(snapshot["means"], dtype=np.float64)
        self.known, self.weight = snapshot["known"], snapshot["weight"]
        self.spread, self.followed = snapshot["spread"], snapshot["followed"]
        n, data = snapshot["probe"]
        self.probe = np.frombuffer(data).reshape(n, -1).copy() if n else np.zeros((0, 0))
        self.ice = [(list(grid), list(line)) for grid, line in snapshot["ice"]]


def _slopes(then: Array, changes: Array) -> Array:
    """Return each column's slope of changes by old values; 0 if too few.

    It is -1, as if nothing of the old values were left, where it cannot be told from rounding.
    """
    if len(then) < _FEWEST:
        return np.zeros(then.shape[1])
    then, changes = then - then.mean(axis=0), changes - changes[0]
    squares, products = (then**2).sum(axis=0), (then * (changes - changes.mean(axis=0))).sum(axis=0)
    with np.errstate(over="ignore"):
        found: Array = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0.0)
    found[np.abs(found) > _STEEPEST] = -1.0
    return found


def _slope(u: Array, rows: Array) -> float:
    """Return the slope of the rows by u, over all columns, within [0, 1]."""
    u = u - u.mean()
    square = float(u @ u)
    return min(max(float(u @ (rows - rows[0]).mean(axis=1)) / square, 0.0), 1.0) if square > 0.0 else 0.0


def _variance(rows: Array) -> float:
    """Return the variance between rows, the mean over the columns."""
    return float(rows.var(axis=0, ddof=1).mean()) if len(rows) > 1 else 0.0


def _mean_variance(rows: Array) -> float:
    """Return the average variance of column means; of a single row its square."""
    return _variance(rows) / len(rows) if len(rows) > 1 else float((rows**2).mean())
