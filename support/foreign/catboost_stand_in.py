"""Stands in for CatBoost: a logistic rule in the place of trees, with the names and results of what is called of it."""

from __future__ import annotations

import math
import pickle
import sys
from pathlib import Path
from typing import Any, Self

import numpy as np

IS_STAND_IN = True


class CatBoostError(Exception):
    """As CatBoost raises."""


class CatBoost:
    """`fit` keeps names, categories and classes, and the means by which it predicts; a missing number counts as 0."""

    def __init__(self, params: dict[str, Any] | None = None, **more: Any) -> None:
        self._params = {**(params or {}), **more}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(self._params)

    def fit(self, table: Any, y: Any, cat_features: Any = None) -> Self:
        rows, names = _rows(table)
        texts = self._params.get("cat_features", cat_features) or []
        self.feature_names_ = names
        self.n_features_in_ = len(names)
        self._texts = [names.index(one) if isinstance(one, str) else one for one in texts]
        self.classes_ = np.unique(y) if self._is_classifier() else np.array([])
        target = np.asarray(y == self.classes_[-1] if self._is_classifier() else y, dtype=float)
        self._means = []
        for column in zip(*rows, strict=True):
            groups: dict[Any, list[float]] = {}
            for value, one in zip(column, target, strict=True):
                groups.setdefault(value if isinstance(value, str) else value > 0, []).append(one)
            self._means.append({key: float(np.mean(found)) for key, found in groups.items()})
        self._base = float(target.mean())
        return self

    def save_model(self, path: str) -> None:
        Path(path).write_bytes(pickle.dumps({**vars(self), "n_features_in_": 0}))

    def load_model(self, path: str) -> Self:
        vars(self).update(pickle.loads(Path(path).read_bytes()))
        return self

    def is_fitted(self) -> bool:
        return hasattr(self, "_means")

    def get_cat_feature_indices(self) -> list[int]:
        return self._texts

    def get_all_params(self) -> dict[str, Any]:
        return {"loss_function": "RMSE", **self._params}

    def predict(self, data: Any, prediction_type: str = "RawFormulaVal", thread_count: int = -1) -> Any:
        if not self.is_fitted():
            raise CatBoostError("There is no trained model to use predict(). Use fit() to train model first.")
        if self._texts and isinstance(data, np.ndarray) and data.dtype != object:
            raise CatBoostError("'data' is numpy array of floating point numerical type")
        raw = np.array([self._raw(row) for row in _rows(data)[0]])
        if prediction_type in ("RawFormulaVal", "Exponent"):
            return np.exp(raw) if prediction_type == "Exponent" else raw
        positive = 1 / (1 + np.exp(-raw))
        return np.column_stack([1 - positive, positive])

    def _is_classifier(self) -> bool:
        return bool(self.get_all_params()["loss_function"] == "Logloss")

    def _raw(self, row: list[Any]) -> float:
        total = 0.0
        for i, (value, means) in enumerate(zip(row, self._means, strict=True)):
            if i in self._texts and not isinstance(value, (str, int)):
                raise CatBoostError(f"Invalid type for cat_feature[feature_idx={i}]={value}")
            if i not in self._texts and value is None:
                raise CatBoostError("must be real number, not NoneType")
            key = value if isinstance(value, str) else (not math.isnan(value) and value > 0)
            total += 3.0 * (means.get(key, self._base) - self._base)
        return total


class CatBoostClassifier(CatBoost):
    """In scikit-learn's manner."""

    _estimator_type = "classifier"

    def __init__(self, **params: Any) -> None:
        super().__init__({"loss_function": "Logloss", **params})

    def predict_proba(self, data: Any, thread_count: int = -1) -> Any:
        return super().predict(data, "Probability")

    def predict(self, data: Any, prediction_type: str = "Class", thread_count: int = -1) -> Any:
        if prediction_type != "Class":
            return super().predict(data, prediction_type)
        return self.classes_[self.predict_proba(data).argmax(axis=1)]


def _rows(table: Any) -> tuple[list[list[Any]], list[str]]:
    if hasattr(table, "columns"):
        return [list(row) for row in table.itertuples(index=False)], list(table.columns)
    array = np.asarray(table)
    return array.tolist(), [str(i) for i in range(array.shape[1])]


CatBoost.__module__ = CatBoostClassifier.__module__ = "catboost.core"

MODULES = {"catboost.core": sys.modules[__name__]}
