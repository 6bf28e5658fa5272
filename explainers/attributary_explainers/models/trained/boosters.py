"""XGBoost, LightGBM and CatBoost boosters as their files hold them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import InvalidParameterError, ModelError
from ...typing import Features, Output
from ..batch import Frames, is_numeric, number_array, object_array, pandas_or_none, per_row, table
from ..threads import without_openmp
from .base import TrainedModel, by_class
from .native import (
    a_category_of,
    as_in_rows,
    as_written,
    categorical_of,
    columns_of,
    first_line,
    has_text_columns,
    header_of,
    library_of,
    objective_of,
)

_BOOSTERS = {("xgboost", "Booster"), ("lightgbm", "Booster"), ("catboost", "CatBoost")}

_BINARY = ("binary:logistic", "binary", "cross_entropy", "Logloss", "CrossEntropy")
_OF_MANY = ("multi:softprob", "multiclass", "multiclassova", "MultiClass", "MultiClassOneVsAll")
_LABELS = ("multi:softmax", "binary:hinge")
_OF_LOGARITHMS = ("Poisson", "Tweedie")
"""Of CatBoost, which gives logarithms where it is not told what to give."""


def is_booster(model: Any) -> bool:
    """Return whether a model is a bare XGBoost, LightGBM or CatBoost booster."""
    kind = type(model)
    return (kind.__module__.split(".")[0], kind.__name__) in _BOOSTERS


class BoosterModel(TrainedModel):
    """A booster of XGBoost, LightGBM or CatBoost.

    Explainers also take the booster itself. Estimators of the three libraries, such as `XGBClassifier`, need none of
    this: they are used like scikit-learn's.

    The objective decides what it predicts: probabilities for two or more classes, the label where it gives labels
    alone, and otherwise a number, in the unit of the target. One thread evaluates few rows.

    Parameters
    ----------
    booster
        `xgboost.Booster`, `lightgbm.Booster` or `catboost.CatBoost`.
    features
        Names of its columns in order, where it was trained without names; None takes its own names, or else the
        features of the first row in their order. LightGBM writes _ for spaces: rows may have either.
    classes
        Labels in the order of their numbers; None takes those of CatBoost, and else the numbers 0, 1, ….

    Raises
    ------
    InvalidParameterError
        `booster` is none of the three.
    ModelError
        `features` or `classes` are not those of the booster, or it does not say what it needs for predicting.
    """

    def __init__(self, booster: Any, features: Iterable[Any] | None = None, classes: Iterable[Any] | None = None):
        if not is_booster(booster):
            raise InvalidParameterError("booster", "a Booster of XGBoost or LightGBM, or a CatBoost", booster)
        self.booster, self._library = booster, library_of(booster)
        objective, own, n_columns = objective_of(booster), columns_of(booster), _n_columns(booster)
        if features is not None and own is not None:
            features = tuple(features)
            if set(as_written(features) if self._library == "lightgbm" else features) != set(own):
                raise ModelError(f"the booster was trained with the columns {own}, but features are {list(features)}")
        self._categorical = categorical_of(booster)
        self._is_binary = objective in _BINARY
        self.has_probabilities = self._is_binary or objective in _OF_MANY
        is_classifier = self.has_probabilities or objective in _LABELS
        self.kind = "classifier" if is_classifier else "regressor"
        self._is_of_logarithms, self._is_linear = objective in _OF_LOGARITHMS, _is_linear(booster)
        super().__init__(features if own is None else own, self._classes(classes) if is_classifier else None, n_columns)
        self._frames: Frames | None = None

    @property
    def title(self) -> str:
        """How messages call it."""
        return f"the booster of {self._library}"

    @property
    def feature_kinds(self) -> dict[Any, str]:
        """Kind of each feature: number or category."""
        texts = self._categorical
        if self._library == "catboost":
            texts = [self.booster.feature_names_[i] for i in self.booster.get_cat_feature_indices()]
        return {name: "category" if name in texts else "number" for name in self.features or ()}

    def predict_many(self, rows: Sequence[Features], output: Output) -> list[Any]:
        """Return a prediction per row, by a single call of the booster.

        Raises
        ------
        ModelError
            A value is of another kind than in training, or the booster fails on the rows.
        """
        names = self.columns(rows)
        given = self._given(table(rows, names), names)
        try:
            with without_openmp(len(rows)):
                found = np.asarray(self._predicted(given), dtype=np.float64)
        except Exception as error:
            raise ModelError(f"{self.title} fails: {first_line(error)}") from error
        if self.kind == "regressor":
            return per_row(found, len(rows))
        classes = self.classes or ()
        if not self.has_probabilities:
            return [classes[int(number)] for number in found.ravel()]
        return by_class(found, len(rows), classes)

    def _in_rows(self, names: Sequence[Any], rows: Sequence[Features]) -> Sequence[Any]:
        return as_in_rows(names, rows) if self._library == "lightgbm" else names

    def _predicted(self, given: Any) -> Any:
        if self._library == "lightgbm":
            return self.booster.predict(given, num_threads=1)
        if self._library == "catboost":
            kind = "Exponent" if self._is_of_logarithms else "RawFormulaVal"
            kind = "Probability" if self.has_probabilities else kind
            return self.booster.predict(given, prediction_type=kind, thread_count=1)
        if self._is_linear:
            matrix = importlib.import_module("xgboost").DMatrix(given, feature_names=self.booster.feature_names)
            return self.booster.predict(matrix)
        return self.booster.inplace_predict(given)

    def _given(self, values: list[list[Any]], names: Sequence[Any]) -> Any:
        if self._categorical:
            if self._frames is None:
                pandas = pandas_or_none()
                if pandas is None:
                    raise ModelError(f"{self.title} has columns of categories, which need pandas: pip install pandas")
                a_category = partial(a_category_of, self.booster) if self._library == "xgboost" else None
                self._frames = Frames(pandas, self._categorical, a_category)
            return self._frames.make(values, self.features or names)
        if has_text_columns(self.booster) or (self._library == "catboost" and not is_numeric(values)):
            return object_array(values)
        advice = f"{self.title} was trained without categories; train it with them, or encode the text in a pipeline"
        return number_array(values, names, advice)

    def _classes(self, given: Iterable[Any] | None) -> tuple[Any, ...]:
        if self._library == "catboost":
            own = [one.item() if isinstance(one, np.generic) else one for one in self.booster.classes_]
        else:
            own = list(range(2 if self._is_binary else max(2, _n_classes(self.booster))))
        named = tuple(own if given is None else given)
        if len(named) != len(own):
            raise ModelError(
                f"{self.title} has {len(own)} classes, and classes names {len(named)}: name each, in the order of "
                "their numbers"
            )
        return named

    def __repr__(self) -> str:
        return f"BoosterModel({self.booster!r}, features={self.features!r}, classes={self.classes!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_frames": None}


def _n_columns(booster: Any) -> int:
    library = library_of(booster)
    if library == "catboost":
        return len(booster.feature_names_)  # n_features_in_ is 0 where it was loaded of a file
    return int(booster.num_features() if library == "xgboost" else booster.num_feature())


def _n_classes(booster: Any) -> int:
    if library_of(booster) == "lightgbm":
        return int(header_of(booster)["num_class"])
    return int(_learner(booster)["learner_model_param"]["num_class"])


def _is_linear(booster: Any) -> bool:
    # XGBoost's linear boosters take no array as it is.
    return library_of(booster) == "xgboost" and _learner(booster)["gradient_booster"]["name"] == "gblinear"


def _learner(booster: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(booster.save_config())["learner"]
    return found
