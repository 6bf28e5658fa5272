"""Models that are a formula: River models that never learn, evaluated on an array so that runs can be many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from river import base

from attributary_explainers.evaluation.evaluator import Evaluator
from attributary_explainers.evaluation.registry import register
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.typing import Array, Features


@dataclass(frozen=True)
class Formula:
    """A function of an array of rows, and how an observation becomes one.

    Parameters
    ----------
    features
        The columns, in alphabetical order, as the fast paths have them.
    function
        Shape (rows, columns) to shape (rows,).
    levels
        The texts of a feature that is a category; its column holds their positions here.
    """

    features: tuple[str, ...]
    function: Callable[[Array], Array]
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if list(self.features) != sorted(self.features):
            raise ValueError(f"the features are in alphabetical order, got {self.features}")

    def observations(self, X: Array) -> list[dict[str, Any]]:
        """Return the rows as observations of a stream."""
        columns: list[list[Any]] = X.T.tolist()
        for i, name in enumerate(self.features):
            if name in self.levels:
                columns[i] = [self.levels[name][int(value)] for value in columns[i]]
        return [dict(zip(self.features, row, strict=True)) for row in zip(*columns, strict=True)]

    def of_one(self, x: Features) -> float:
        """Return the value for one observation."""
        row = [self.levels[name].index(x[name]) if name in self.levels else x[name] for name in self.features]
        return float(self.function(np.array([row], dtype=np.float64))[0])


class _Formulated:
    def __init__(self, formula: Formula) -> None:
        self.formula = formula

    def learn_one(self, x: Any, y: Any, **kwargs: Any) -> None:
        """Do nothing: the model is fixed."""


class FormulaRegressor(_Formulated, base.Regressor):
    """Predicts the value of a formula."""

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Return the value."""
        return self.formula.of_one(x)


class FormulaClassifier(_Formulated, base.Classifier):
    """Predicts True with the probability that the formula says."""

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[bool | str | int, float]:
        """Return both probabilities."""
        p = self.formula.of_one(x)
        return {False: 1.0 - p, True: p}


class FormulaRule(_Formulated, base.Classifier):
    """Predicts True where the formula is 1, without probabilities."""

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> bool:
        """Return the label."""
        return self.formula.of_one(x) > 0.5


@register(FormulaRegressor, FormulaClassifier, FormulaRule)
class FormulaEvaluator(Evaluator):
    """Evaluates a formula on all rows at once; texts come as codes, which are put back into positions."""

    def __init__(self, model: Any, schema: Schema) -> None:
        self.formula: Formula = model.formula
        self.labels = None if isinstance(model, FormulaRegressor) else (False, True)
        self._codes = [(i, schema.codes[i], self.formula.levels[schema.features[i]]) for i in schema.codes]

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        if self._codes:
            X = X.copy()
            for column, codes, levels in self._codes:
                positions = np.array([levels.index(text) for text in codes], dtype=np.float64)
                X[:, column] = positions[X[:, column].astype(np.intp)]
        value = self.formula.function(X)
        return value[:, None] if self.labels is None else np.column_stack((1.0 - value, value))
