"""Boosters of XGBoost, LightGBM and CatBoost in their own form, as their files hold them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import InvalidParameterError, ModelError
from ...typing import Features, Output
from ..batch import is_numeric, per_row, table
from ..frames import Frames, pandas_or_none
from ..threads import without_openmp
from .base import TrainedModel, of_two
from .native import categorical_of, columns_of, library_of, objective_of

_BOOSTERS = {("xgboost", "Booster"), ("lightgbm", "Booster"), ("catboost", "CatBoost")}

_BINARY = ("binary:logistic", "binary", "cross_entropy", "Logloss", "CrossEntropy")
_OF_MANY = ("multi:softprob", "multiclass", "multiclassova", "MultiClass", "MultiClassOneVsAll")
_LABELS = ("multi:softmax", "binary:hinge")


def is_booster(model: Any) -> bool:
    """Return whether a model is `xgboost.Booster`, `lightgbm.Booster` or `catboost.CatBoost` itself."""
    kind = type(model)
    return (kind.__module__.split(".")[0], kind.__name__) in _BOOSTERS


class BoosterModel(TrainedModel):
    """A booster of XGBoost, LightGBM or CatBoost; explainers take the booster itself, too.

    Estimators of the three, `XGBClassifier` and the like, need none of this: they are taken as scikit-learn's are.

    What it predicts follows from its objective: probabilities of a binary one or one of several classes, the label of
    one that gives labels alone, and a number of every other. All trees are asked,
    of few rows by one thread.

    Parameters
    ----------
    booster
        `xgboost.Booster`, `lightgbm.Booster` or `catboost.CatBoost`.
    features
        Names of its columns in order, where it was trained without names; None takes its own names, or else the
        features of the first row in their order.
    classes
        Labels in the order of their numbers; None takes those of CatBoost, and else the numbers 0, 1, ….

    Raises
    ------
    InvalidParameterError
        `booster` is none of the three.
    """

    def __init__(self, booster: Any, features: Iterable[Any] | None = None, classes: Iterable[Any] | None = None):
        if not is_booster(booster):
            raise InvalidParameterError("booster", "a Booster of XGBoost or LightGBM, or a CatBoost", booster)
        self.booster, self._library = booster, library_of(booster)
        objective, own = objective_of(booster), columns_of(booster)
        if features is not None and own is not None:
            features = tuple(features)
            if set(features) != set(own):
                raise ModelError(f"the booster was trained with the columns {own}, but features are {list(features)}")
        self._categorical = categorical_of(booster)
        self._is_binary = objective in _BINARY
        self.has_probabilities = self._is_binary or objective in _OF_MANY
        is_classifier = self.has_probabilities or objective in _LABELS
        self.kind = "classifier" if is_classifier else "regressor"
        if not is_classifier:
            classes = None
        elif classes is None:
            classes = self._own_classes()
        super().__init__(features if own is None else own, classes, _n_columns(booster))
        self._frames: Frames | None = None

    @property
    def title(self) -> str:
        """How messages call it."""
        return f"the booster of {self._library}"

    @property
    def feature_kinds(self) -> dict[Any, str]:
        """What each feature is: a number or a category."""
        texts = self._categorical
        if self._library == "catboost":
            texts = [self.booster.feature_names_[i] for i in self.booster.get_cat_feature_indices()]
        return {name: "category" if name in texts else "number" for name in self.features or ()}

    def predict_many(self, rows: Sequence[Features], output: Output) -> list[Any]:
        """Return a prediction per row, of one call of the booster."""
        given = self._given(table(rows, self.columns(rows)), self.columns(rows))
        if self._library == "xgboost":
            with without_openmp(len(rows)):
                found = self.booster.inplace_predict(given)
        elif self._library == "lightgbm":
            found = self.booster.predict(given, num_threads=1)
        else:
            kinds = {True: "Probability", False: "RawFormulaVal"}
            found = self.booster.predict(given, prediction_type=kinds[self.has_probabilities], thread_count=1)
        found = np.asarray(found, dtype=np.float64)
        if self.kind == "regressor":
            return per_row(found, len(rows))
        classes = self.classes or ()
        if not self.has_probabilities:
            return [classes[int(number)] for number in found.ravel()]
        if found.ndim == 1:
            return of_two(classes, found.tolist())
        return per_row(found, len(rows), classes)

    def _given(self, values: list[list[Any]], names: Sequence[Any]) -> Any:
        if self._categorical:
            if self._frames is None:
                pandas = pandas_or_none()
                if pandas is None:
                    raise ModelError(f"{self.title} has columns of categories, which need pandas: pip install pandas")
                self._frames = Frames(pandas, self._categorical)
            return self._frames.make(values, names)
        if is_numeric(values):
            return np.array(values, dtype=np.float64)
        found = np.empty((len(values), len(names)), dtype=object)
        found[:] = values
        if self._library == "catboost":
            return found
        name, value = next(
            (name, value) for row in values for name, value in zip(names, row, strict=True) if not is_numeric([[value]])
        )
        raise ModelError(
            f"expected a number as feature {name!r}, got {value!r}: {self.title} was trained without categories; train "
            "it with them, or encode the text in a pipeline"
        )

    def _own_classes(self) -> list[Any]:
        if self._library == "catboost":
            return [one.item() if isinstance(one, np.generic) else one for one in self.booster.classes_]
        return list(range(2 if self._is_binary else max(2, _n_classes(self.booster))))

    def __repr__(self) -> str:
        return f"BoosterModel({self.booster!r}, features={self.features!r}, classes={self.classes!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_frames": None}


def _n_columns(booster: Any) -> int:
    counts = {"xgboost": "num_features", "lightgbm": "num_feature"}
    name = counts.get(library_of(booster) or "")
    return int(getattr(booster, name)() if name else booster.n_features_in_)


def _n_classes(booster: Any) -> int:
    if library_of(booster) == "lightgbm":
        lines = booster.model_to_string().splitlines()
        return int(next(one.partition("=")[2] for one in lines if one.startswith("num_class=")))
    learner = json.loads(booster.save_config())["learner"]
    return int(learner["learner_model_param"]["num_class"])
