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

from ....evaluation.evaluator import NotCoveredError
from ....evaluation.schema import Schema
from ....typing import Array
from ..arrays import added, enlarged
from .store import Known

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


class NumberRecord:
    """A leaf, its place in the tree, and the count of its mean when it was read."""

    __slots__ = ("count", "leaf", "mean", "place", "siblings")

    def __init__(self, leaf: Any, mean: Mean, siblings: Sequence[Any] | None, place: int) -> None:
        self.leaf, self.mean, self.place = leaf, mean, place
        self.siblings = (leaf,) if siblings is None else siblings
        self.count: Any = None


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
        self.records: list[NumberRecord] = []
        """By slot."""
        self.lists: tuple[Any, ...] = ({}, {}, {}, [], [], [])
        self._free: list[int] = []
        self._news: list[float] = []
        self.modes = np.zeros(64, np.int64)
        self.base = np.zeros(64)
        self.linear = np.zeros((64, len(schema)))

    def follow_labels(self, tree: Any) -> None:
        """See `LeafStore`: regressors have none."""

    def put(self, leaf: Any, tree: Any, siblings: Sequence[Any] | None, place: int) -> int:
        """Return a slot for the leaf.

        Raises
        ------
        NotCoveredError
            The leaf is of an unknown kind.
        """
        if leaf is not None and type(leaf) not in ESTIMATES:
            raise NotCoveredError(f"a tree has a leaf of type {type(leaf).__qualname__}")
        kept = NumberRecord(leaf, _NO_MEAN if leaf is None else leaf.stats.mean, siblings, place)
        if self._free:
            s = self._free.pop()
            self.records[s] = kept
        else:
            s = len(self.records)
            self.records.append(kept)
            if s == len(self.modes):
                self.modes = enlarged(self.modes, (2 * s,))
                self.base = enlarged(self.base, (2 * s,))
                self.linear = enlarged(self.linear, (2 * s, len(self.schema)))
        if leaf is None:
            kept.count = _NO_MEAN.n
            self.modes[s], self.base[s] = 0, 0.0
        return s

    def drop(self, slot: int) -> None:
        """Forget the leaf."""
        self.records[slot] = NumberRecord(None, _NO_MEAN, None, 0)
        self._free.append(slot)

    def take_in(self, slot: int, weight: float | None, *, gone: bool, renewed: bool = False) -> bool:
        """See `LeafStore`."""
        kept = self.records[slot]
        before, n = kept.count, kept.mean.n
        if before is None or weight is None or not added(before, weight, n):
            return False
        if not gone:
            self._load(slot, kept)
            kept.count = n
        return True

    def take_in_all(self, trees: Sequence[Any], structure: Known) -> list[int] | None:
        """See `LeafStore`: regressors are looked at one by one."""
        return None

    def refresh(self, reached: Sequence[int]) -> None:
        """Read those of the leaves in these slots that have changed.

        Raises
        ------
        NotCoveredError
            A leaf has a model that is not covered.
        """
        for s in reached:
            kept = self.records[s]
            if kept.mean.n is not kept.count:
                self._load(s, kept)
                kept.count = kept.mean.n

    def news(self, wanted: bool) -> Array:
        """Return what has been read since the last call, as `regress` takes it."""
        found = array("d", (wanted, *self._news))
        self._news.clear()
        return np.frombuffer(found)

    def _load(self, s: int, kept: NumberRecord) -> None:
        leaf, news = kept.leaf, self._news
        rule = ESTIMATES[type(leaf)]
        if rule == MEAN or (rule == EITHER and leaf._fmse_mean < leaf._fmse_model):
            news += (s, 0.0, kept.mean._mean)
            return
        model = leaf._leaf_model
        if type(model) is not LinearRegression or type(model.loss) is not Squared:
            raise NotCoveredError(f"a leaf has a model of type {type(model).__qualname__}, or another loss")
        if self.schema.codes:
            raise NotCoveredError("a leaf has a linear model, which reads no categories")
        get = model._weights.to_dict().get
        news += (s, 1.0, model.intercept)
        news += [get(feature, 0.0) for feature in self.schema.features]


_NO_MEAN = Mean()
