"""The part that evaluators of classification and of regression trees share."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from river.tree import HoeffdingAdaptiveTreeClassifier, HoeffdingAdaptiveTreeRegressor

from ...evaluation.changed_rows import ChangedRows
from ...evaluation.evaluator import Evaluator, NotCoveredError
from ...evaluation.schema import Schema
from ...typing import Array, Ints
from .leaves.store import LeafStore, NewLabelsError
from .routes import FINE, LISTED
from .structure import Structure

Trees = Callable[[], list[Any]]
"""Gives the live list of trees."""

Ask = Callable[[Structure, bool], int]

L = TypeVar("L", bound=LeafStore)

NO_ORDER: Ints = np.empty(0, np.int64)
"""That of rows which are in the best order."""

_ADAPTIVE = (HoeffdingAdaptiveTreeClassifier, HoeffdingAdaptiveTreeRegressor)


def nominal(model: Any) -> frozenset[Any]:
    """Return the features that a tree, or all trees of a forest, read as categories whatever they are."""
    return frozenset(model.nominal_attributes or ())


class TreesEvaluator(Evaluator, Generic[L]):
    """The base of evaluators of trees: it has the structure and the leaves of the trees that there are now.

    Parameters
    ----------
    trees
        Gives the live list of trees.
    schema
        The schema of the rows.
    """

    def __init__(self, trees: Trees, schema: Schema) -> None:
        self.schema = schema
        self._trees = trees
        self._members: list[Any] = []
        self._adaptive: list[bool] = []
        self._structure: Structure | None = None
        self._leaves: L = self._new_leaves()
        self._check_all(trees())

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        return self.predict_along(X, NO_ORDER)

    def predict_along(self, X: Array, order: Ints) -> Array:
        """See `Evaluator`."""
        try:
            return self._evaluate(X, order, self._follow(self._trees()))
        except NotCoveredError:
            # It may have stopped half-way: nothing of it is to be used again.
            self._structure = None
            raise

    def predict_changed(self, rows: ChangedRows) -> Array:
        """See `Evaluator`."""
        try:
            found = self._evaluate_changed(rows, self._follow(self._trees()))
        except NotCoveredError:
            self._structure = None
            raise
        return super().predict_changed(rows) if found is None else found

    def _evaluate_changed(self, rows: ChangedRows, structure: Structure) -> Array | None:
        """Return what the trees make of the rows, or None where these have to be written down."""
        return None

    @abc.abstractmethod
    def _evaluate(self, X: Array, order: Ints, structure: Structure) -> Array:
        """Return what the trees make of the rows, which are best sent down them in this order."""

    @abc.abstractmethod
    def _ask(self, X: Array, order: Ints, structure: Structure, wanted: bool) -> int:
        """Send the rows down the trees in one compiled call, and return what came of it: see `routes.FINE`.

        Parameters
        ----------
        wanted
            Whether predictions are wanted, too.
        """

    def _send(self, ask: Ask, structure: Structure, found: int | None = None) -> bool:
        """Have rows predicted by what the trees are now; return False where River may do otherwise.

        Parameters
        ----------
        ask
            `_ask` with its rows.
        found
            What has come of it already, where it has been asked once.
        """
        wanted = True
        while True:
            if found is None:
                found = ask(structure, wanted)
            if found != LISTED:
                return found == FINE
            reached = structure.amend()
            wanted = reached is not None
            if reached is not None:
                self._leaves.refresh(reached)
            found = None

    @abc.abstractmethod
    def _check(self, tree: Any) -> None:
        """Raise `NotCoveredError` for a tree whose type or parameters are not covered."""

    @abc.abstractmethod
    def _new_leaves(self) -> L:
        """Return a store of leaves that is still empty."""

    def _has_new_labels(self, trees: Sequence[Any]) -> bool:
        """Return whether leaves have other classes than before."""
        return False

    def _follow_settings(self, trees: Sequence[Any], structure: Structure) -> None:
        """Have leaves read again where settings of the trees have changed on which they depend."""

    def _check_all(self, trees: Sequence[Any]) -> None:
        for tree in trees:
            self._check(tree)

    def _follow(self, trees: list[Any]) -> Structure:
        """Return the structure, which has taken in what these trees are now: a new one where the last does not fit."""
        structure = self._structure
        if structure is not None and structure.worn:
            structure = None
        others = structure is None or trees != self._members
        if others:
            self._check_all(trees)
            self._members = list(trees)
            adaptive = [type(tree) in _ADAPTIVE for tree in trees]
            if any(adaptive) != any(self._adaptive):
                structure = None
            self._adaptive = adaptive
        if (others and self._has_new_labels(trees)) or structure is None:
            structure = self._renew()
        self._follow_settings(trees, structure)
        try:
            structure.begin(trees, self._adaptive)
        except (NotCoveredError, NewLabelsError) as reason:
            # A leaf may have been read that rows do not reach: they say whether it is needed.
            if isinstance(reason, NewLabelsError):
                self._has_new_labels(trees)
            structure = self._renew()
            structure.begin(trees, self._adaptive)
        return structure

    def _renew(self) -> Structure:
        """Begin with nothing known."""
        self._leaves = self._new_leaves()
        self._structure = structure = Structure(self.schema, self._leaves, any(self._adaptive))
        return structure
