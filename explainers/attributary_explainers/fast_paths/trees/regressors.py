"""Fast path of regression trees: one evaluation for a single tree, and for all trees of a forest together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from river.forest.adaptive_random_forest import BaseTreeRegressor
from river.linear_model import LinearRegression
from river.tree import HoeffdingAdaptiveTreeRegressor, HoeffdingTreeRegressor

from ...evaluation.evaluator import Evaluator, NotCoveredError
from ...evaluation.registry import register
from ...evaluation.schema import Schema
from ...typing import Array, Ints
from .estimates import regress
from .evaluator import Trees, TreesEvaluator, nominal
from .leaves.numbers import NumberLeaves
from .structure import Structure

REGRESSOR_TREES: frozenset[type] = frozenset(
    (HoeffdingTreeRegressor, HoeffdingAdaptiveTreeRegressor, BaseTreeRegressor)
)


class TreeRegressors(TreesEvaluator[NumberLeaves]):
    """Evaluates regression trees: the number that each gives, and what a forest makes of them.

    Parameters
    ----------
    trees
        Gives the live list of trees.
    schema
        The schema of the rows.
    combine
        From numbers of shape (rows, trees) to shape (rows, 1); None for a single tree.
    """

    def __init__(self, trees: Trees, schema: Schema, combine: Callable[[Array], Array] | None = None) -> None:
        super().__init__(trees, schema)
        self._combine = combine
        self._V: Array = np.zeros((0, 0))

    def _evaluate(self, X: Array, order: Ints, structure: Structure) -> Array:
        shape = len(X), len(structure.trees)
        if self._V.shape != shape:
            self._V = np.zeros(shape)
        if not self._send(partial(self._ask, X, order), structure):
            raise NotCoveredError("so much cancels in a linear leaf that the order in which it adds up shows")
        return self._V if self._combine is None else self._combine(self._V)

    def _ask(self, X: Array, order: Ints, structure: Structure, wanted: bool) -> int:
        leaves = self._leaves
        return regress(
            X, order, leaves.news(wanted), structure.table, structure.fields, structure.thresholds, structure.targets,
            structure.listed, structure.extras, leaves.modes, leaves.base, leaves.linear, self._V,
        )  # fmt: skip

    def _check(self, tree: Any) -> None:
        if type(tree) not in REGRESSOR_TREES:
            raise NotCoveredError(f"the ensemble has a member that is no Hoeffding tree: {type(tree).__qualname__}")
        if tree._leaf_prediction != "mean" and type(tree.leaf_model) is not LinearRegression:
            raise NotCoveredError(f"leaves whose model is {type(tree.leaf_model).__qualname__}")

    def _new_leaves(self) -> NumberLeaves:
        return NumberLeaves(self.schema)


@register(HoeffdingTreeRegressor, HoeffdingAdaptiveTreeRegressor, categorical=nominal, gaps=True)
def tree_regressor(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of one regression tree."""
    trees = [model]
    return TreeRegressors(lambda: trees, schema)
