"""Fast paths of ensembles of covered models: bagging, boosting, patches."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from river import ensemble
from river.ensemble.streaming_random_patches import BaseSRPClassifier, BaseSRPRegressor

from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import categories_of_all, make_evaluator, numbers_of_all, register
from ..evaluation.schema import Schema
from ..ordering import sort_key
from ..typing import Array
from .trees import exact_mean, forest_of_trees, mean_of_trees


class Member:
    """A member of an ensemble with its fast path.

    Parameters
    ----------
    model
        The member.
    names
        The features that it sees; None for all.
    schema
        The schema of the rows that the ensemble gets.
    """

    def __init__(self, model: Any, names: tuple[Any, ...] | None, schema: Schema) -> None:
        self.model, self.names = model, names
        self._columns: list[int] | None = None
        if names is not None:
            kept = [name for name in names if name in schema.position]
            if not kept:
                raise NotCoveredError("a member of the ensemble sees no feature")
            inner = schema.for_columns(kept, schema.categorical.intersection(kept), schema.numbers)
            self._columns = [schema.position[name] for name in inner.features]
            for column in inner.codes:
                inner.share(column, schema, self._columns[column])
            schema = inner
        self.evaluator = make_evaluator(model, schema)

    def predict(self, X: Array) -> Array:
        """Return the member's predictions.

        Raises
        ------
        NotCoveredError
            It has none for a row.
        """
        P = self.evaluator.predict(X if self._columns is None else np.take(X, self._columns, axis=1))
        if np.isnan(P).any():
            raise NotCoveredError("a member of the ensemble has no prediction yet")
        return P


class _EnsembleEvaluator(Evaluator):
    """The base of ensembles, which looks for new members at each call."""

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._members: list[Member] = []
        self._follow(self._parts())

    def _parts(self) -> list[tuple[Any, tuple[Any, ...] | None]]:
        """Return the members there are, each with the features that it sees."""
        return [(model, None) for model in self.model.data]

    def _follow(self, parts: Sequence[tuple[Any, tuple[Any, ...] | None]]) -> None:
        members = self._members
        if len(parts) != len(members) or any(
            member.model is not model or member.names != names
            for member, (model, names) in zip(members, parts, strict=True)
        ):
            known = {(id(member.model), member.names): member for member in members}
            self._members = [known.get((id(one), names)) or Member(one, names, self.schema) for one, names in parts]

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        self._follow(self._parts())
        return self._combine([member.predict(X) for member in self._members], len(X))

    @abc.abstractmethod
    def _combine(self, found: list[Array], n: int) -> Array:
        """Return the prediction of the ensemble for `n` rows."""


class BaggingEvaluator(_EnsembleEvaluator):
    """An evaluator of classifiers that normalise summed probabilities."""

    def _combine(self, found: list[Array], n: int) -> Array:
        of_each = [member.evaluator.labels for member in self._members]
        if None in of_each:
            raise NotCoveredError("a member of the ensemble is no classifier")
        self.labels = tuple(sorted({label for labels in of_each for label in labels or ()}, key=sort_key))
        place = {label: i for i, label in enumerate(self.labels)}
        P = np.zeros((n, len(place)))
        for i, (vote, labels) in enumerate(zip(found, of_each, strict=True)):
            weight = self._weight(i)
            if labels == self.labels:
                P += vote * weight
            else:
                P[:, [place[label] for label in labels or ()]] += vote * weight
        total = P.sum(axis=1, keepdims=True)
        return P / np.where(total > 0.0, total, 1.0)

    def _weight(self, i: int) -> float:
        return 1.0


class BoostingEvaluator(BaggingEvaluator):
    """An evaluator of AdaBoost, also with ADWIN: members weigh by success."""

    def _weight(self, i: int) -> float:
        wrong, correct = self.model.wrong_weight.get(i, 0), self.model.correct_weight.get(i, 0)
        epsilon = (wrong + 1e-16) / ((correct + wrong) + 1e-16)
        if epsilon == 0 or epsilon > 0.5:
            return 1.0
        beta_inverse = (1 - epsilon) / epsilon
        return math.log(beta_inverse) if beta_inverse != 0 else 0.0


class PatchesClassifierEvaluator(BaggingEvaluator):
    """An evaluator of `ensemble.SRPClassifier`: members see some features."""

    def _parts(self) -> list[tuple[Any, tuple[Any, ...] | None]]:
        return _patches_of(self.model, BaseSRPClassifier)

    def _weight(self, i: int) -> float:
        value: float = 1.0 if self.model.disable_weighted_vote else self.model.data[i].metric.get()
        return value if value > 0.0 else 1.0


class PatchesRegressorEvaluator(_EnsembleEvaluator):
    """An evaluator of `ensemble.SRPRegressor`: members see some features."""

    def _parts(self) -> list[tuple[Any, tuple[Any, ...] | None]]:
        return _patches_of(self.model, BaseSRPRegressor)

    def _combine(self, found: list[Array], n: int) -> Array:
        model = self.model
        if len(found) not in (0, model.n_models):
            raise NotCoveredError("another number of members than said")
        if not found:
            return np.zeros((n, 1))
        y = np.hstack(found)
        if model.aggregation_method != "mean":
            return np.median(y, axis=1)[:, None]
        weights = np.ones(len(found))
        if not model.disable_weighted_vote:
            weights = np.array([max(member.metric.get(), 0.0) for member in model.data], dtype=np.float64)
            if not model.metric.bigger_is_better:
                weights = -(weights - max(weights))
            if sum(weights) == 0:
                return np.zeros((n, 1))
        average: Array = np.average(y, axis=1, weights=weights)[:, None]
        return average


class AverageEvaluator(_EnsembleEvaluator):
    """Evaluates bagging regressors."""

    def _combine(self, found: list[Array], n: int) -> Array:
        return exact_mean(np.hstack(found))


def _patches_of(model: Any, kind: type) -> list[tuple[Any, tuple[Any, ...] | None]]:
    for member in model.data:
        if type(member) is not kind:
            raise NotCoveredError(f"a member of the type {type(member).__name__}")
    return [(member.model, None if member.features is None else tuple(member.features)) for member in model.data]


def _bagging(model: Any, schema: Schema) -> Evaluator:
    """Return a bag's evaluator: trees together, other members singly."""
    try:
        return forest_of_trees(model, schema)
    except NotCoveredError:
        return BaggingEvaluator(model, schema)


def _averaging(model: Any, schema: Schema) -> Evaluator:
    """Return an averaging evaluator: of all trees at once, or singly."""
    try:
        return mean_of_trees(model, schema)
    except NotCoveredError:
        return AverageEvaluator(model, schema)


def _models(model: Any) -> list[Any]:
    if type(model) in (ensemble.SRPClassifier, ensemble.SRPRegressor):
        return [member.model for member in model.data] or [model.model]
    return list(model.data)


for factory, kinds in (
    (_bagging, (ensemble.BaggingClassifier, ensemble.ADWINBaggingClassifier, ensemble.LeveragingBaggingClassifier)),
    (BoostingEvaluator, (ensemble.AdaBoostClassifier, ensemble.ADWINBoostingClassifier)),
    (_averaging, (ensemble.BaggingRegressor,)),
    (PatchesClassifierEvaluator, (ensemble.SRPClassifier,)),
    (PatchesRegressorEvaluator, (ensemble.SRPRegressor,)),
):
    register(
        *kinds,
        categorical=lambda model: categories_of_all(_models(model)),
        numbers=lambda model: numbers_of_all(_models(model)),
        gaps=True,
    )(factory)
