"""Leaves of the sampler's trees, each with a reservoir of target values."""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from river.tree.nodes.hatc_nodes import AdaLeafClassifier
from river.tree.nodes.hatr_nodes import AdaLeafRegMean
from river.tree.nodes.htc_nodes import LeafNaiveBayesAdaptive
from river.tree.nodes.leaf import HTLeaf
from river.tree.utils import BranchFactory

from .encoding import Code
from .splitters import NominalObserver


class Empty(enum.Enum):
    """The type of `EMPTY`; an enumeration, so that a copy is the same object."""

    EMPTY = "EMPTY"

    def __repr__(self) -> str:
        return self.value


EMPTY: Final = Empty.EMPTY
"""The result of a draw where nothing is stored, as every value, None too, could be somebody's category."""


class RecentRows:
    """Keeps the encoded rows of the last `size` observations, by number."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._rows: list[tuple[int, dict[Any, Code]]] = []

    def add(self, number: int, row: dict[Any, Code]) -> None:
        """Keep the row of an observation, uncopied; numbers run from 1, no gaps."""
        if len(self._rows) < self.size:
            self._rows.append((number, row))
        else:
            self._rows[(number - 1) % self.size] = (number, row)

    def get(self, number: int) -> dict[Any, Code] | None:
        """Return the row of an observation, None once it is too long ago."""
        kept, row = self._rows[(number - 1) % self.size]
        return row if kept == number else None


class _Leaf(HTLeaf):
    """Keeps a geometric reservoir of target values, with observation numbers."""

    counts: None = None  # where a branch has its children's counts

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]  # as River's leaves are
        self.values: list[Any] = []
        self.numbers: list[int] = []
        self._ordered: list[Any] | None = None
        self._inherited = self.total_weight

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ordered": None}  # values again, in another order

    def keep(self, value: Any, number: int, slot: Callable[[int], int], size: int) -> None:
        """Store a value; if full, in a drawn slot (iSAGE Algorithm 2)."""
        self._ordered = None
        if len(self.values) < size:
            self.values.append(value)
            self.numbers.append(number)
        else:
            k = slot(size)
            self.values[k], self.numbers[k] = value, number

    @property
    def ordered(self) -> list[Any]:
        """The values, sorted if possible, so that near numbers draw near values."""
        if self._ordered is None:
            try:
                self._ordered = sorted(self.values)
            except TypeError:  # categories of mixed types
                self._ordered = list(self.values)
        return self._ordered

    def best_split_suggestions(self, criterion: Any, tree: Any) -> list[BranchFactory]:
        """Return the splits with evidence and the null split; [] without evidence.

        River takes the null split for infinitely bad, so that a leaf with one feature always splits; and it stops
        learning in a leaf for good where no feature can be split. If some observations lacked a feature, its merit is
        multiplied by the share that had it (Quinlan, C4.5).
        """
        learnt = self.total_weight - self._inherited
        found = []
        for feature, observer in self.splitters.items():
            suggestion = observer.best_evaluated_split_suggestion(criterion, self.stats, feature, tree.binary_split)
            if suggestion.feature is not None:
                suggestion.merit *= min(observer.n / learnt, 1.0)
                found.append(suggestion)
        return [BranchFactory(0.0), *found] if found else []


class _NoBayes(LeafNaiveBayesAdaptive):
    def learn_one(self, x: Any, y: Any, *, w: float = 1.0, tree: Any = None) -> None:
        # River compares naive Bayes with the majority class at every observation, whichever is asked for.
        HTLeaf.learn_one(self, x, y, w=w, tree=tree)  # type: ignore[no-untyped-call]


class ClassifierLeaf(_Leaf, AdaLeafClassifier, _NoBayes):
    """A leaf of a nominal feature's tree."""

    new_nominal_splitter = staticmethod(partial(NominalObserver, numeric_target=False))

    def prediction(self, x: Any, *, tree: Any = None) -> Any:
        """The weight of each category."""
        return self.stats  # only its largest is looked at: River's copies the counts to normalise them


class RegressorLeaf(_Leaf, AdaLeafRegMean):
    """A leaf of a numeric feature's tree."""

    new_nominal_splitter = staticmethod(partial(NominalObserver, numeric_target=True))
