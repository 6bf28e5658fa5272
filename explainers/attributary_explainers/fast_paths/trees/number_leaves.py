"""Leaves of regressors as arrays, which are read again when a row reaches a leaf that has changed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from river.linear_model import LinearRegression
from river.optim.losses import Squared
from river.stats import Mean
from river.tree.nodes.arf_htr_nodes import RandomLeafAdaptive, RandomLeafMean, RandomLeafModel
from river.tree.nodes.hatr_nodes import AdaLeafRegAdaptive, AdaLeafRegMean, AdaLeafRegModel
from river.tree.nodes.htr_nodes import LeafAdaptive, LeafMean, LeafModel

from ...evaluation.evaluator import NotCoveredError
from ...evaluation.schema import Schema
from ...typing import Array
from .arrays import added, enlarged

MEAN, MODEL, EITHER = range(3)
"""The number that a leaf gives: the mean, that of its linear model, or the one with the lesser error."""

ESTIMATES: dict[type, int] = {
    LeafMean: MEAN,
    RandomLeafMean: MEAN,
    AdaLeafRegMean: MEAN,
    LeafModel: MODEL,
    RandomLeafModel: MODEL,
    AdaLeafRegModel: MODEL,
    LeafAdaptive: EITHER,
    RandomLeafAdaptive: EITHER,
    AdaLeafRegAdaptive: EITHER,
}


class NumberLeaves:
    """Keeps the leaves of regressors in arrays.

    A leaf is as it was read while the count of its mean is the very same object: learning makes another one, whatever
    the weight.

    Parameters
    ----------
    schema
        The schema of the rows.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._leaves: list[Any] = []
        self._means: list[Any] = []
        self._counts: list[Any] = []
        self._free: list[int] = []
        self._records: list[float] = []
        self.modes = np.zeros(64, np.int64)
        self.base = np.zeros(64)
        self.linear = np.zeros((64, len(schema)))

    def put(self, leaf: Any, tree: Any) -> int:
        """Return a slot for the leaf.

        Raises
        ------
        NotCoveredError
            The leaf is of an unknown kind.
        """
        if leaf is not None and type(leaf) not in ESTIMATES:
            raise NotCoveredError(f"a tree has a leaf of type {type(leaf).__qualname__}")
        if self._free:
            s = self._free.pop()
            self._leaves[s], self._counts[s] = leaf, None
        else:
            s = len(self._leaves)
            self._leaves.append(leaf)
            self._counts.append(None)
            self._means.append(None)
            if s == len(self.modes):
                self.modes = enlarged(self.modes, (2 * s,))
                self.base = enlarged(self.base, (2 * s,))
                self.linear = enlarged(self.linear, (2 * s, len(self.schema)))
        if leaf is None:
            self._means[s] = _NO_MEAN
            self._counts[s] = _NO_MEAN.n
            self.modes[s], self.base[s] = 0, 0.0
        else:
            self._means[s] = leaf.stats.mean
        return s

    def drop(self, slot: int) -> None:
        """Forget the leaf."""
        self._leaves[slot] = self._means[slot] = self._counts[slot] = None
        self._free.append(slot)

    def take_in(self, slot: int, weight: float, *, gone: bool) -> bool:
        """See `LeafStore`."""
        mean, before = self._means[slot], self._counts[slot]
        if before is None or not added(before, weight, mean.n):
            return False
        if not gone:
            self._load(slot, self._records)
            self._counts[slot] = mean.n
        return True

    def refresh(self, reached: Sequence[int]) -> None:
        """Read those of the leaves in these slots that have changed.

        Raises
        ------
        NotCoveredError
            A leaf has a model that is not covered.
        """
        means, counts = self._means, self._counts
        for s in reached:
            if means[s].n is not counts[s]:
                self._load(s, self._records)
                counts[s] = means[s].n

    def news(self, wanted: bool) -> Array:
        """Return what has been read since the last call, as `regress` takes it."""
        found = array("d", (wanted, *self._records))
        self._records.clear()
        return np.frombuffer(found)

    def _load(self, s: int, records: list[float]) -> None:
        leaf = self._leaves[s]
        rule = ESTIMATES[type(leaf)]
        if rule == MEAN or (rule == EITHER and leaf._fmse_mean < leaf._fmse_model):
            records += (s, 0.0, self._means[s]._mean)
            return
        model = leaf._leaf_model
        if type(model) is not LinearRegression or type(model.loss) is not Squared:
            raise NotCoveredError(f"a leaf has a model of type {type(model).__qualname__}, or another loss")
        get = model._weights.to_dict().get
        records += (s, 1.0, model.intercept)
        records += [get(feature, 0.0) for feature in self.schema.features]


_NO_MEAN = Mean()
