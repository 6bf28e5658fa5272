"""Fast paths of ensembles over any covered members: bagging, boosting, random patches, weighted averages."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np
from river import ensemble
from river.ensemble.streaming_random_patches import BaseSRPClassifier, BaseSRPRegressor

from ..evaluation.evaluator import Evaluator, NotCoveredError
from ..evaluation.registry import categories_of_all, numbers_of_all, register
from ..evaluation.schema import Schema
from ..typing import Array
from .members import Members
from .trees import exact_mean, forest_of_trees, mean_of_trees


class _EnsembleEvaluator(Evaluator):
    """The base of ensembles: their members are looked at again at each call."""

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self._members = Members(schema)
        self._prepare()

    def _prepare(self) -> None:
        """Look at the members, so that an ensemble that is not covered is refused at once."""
        self._members.follow(self.model.data)

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        return self._combine(X)

    @abc.abstractmethod
    def _combine(self, X: Array) -> Array:
        """Return the prediction of the ensemble."""


class _ClassifierEvaluator(_EnsembleEvaluator):
    def _combine(self, X: Array) -> Array:
        P = self._vote(X)
        self.labels = self._members.labels
        return P

    @abc.abstractmethod
    def _vote(self, X: Array) -> Array:
        """Return the probabilities of the labels of all members."""


class BaggingEvaluator(_ClassifierEvaluator):
    """Evaluates bagging classifiers: the normalised sum of the members' probabilities."""

    def _vote(self, X: Array) -> Array:
        return _normalised(_sum(self._members.votes(X, self.model.data), X))


class BoostingEvaluator(_ClassifierEvaluator):
    """Evaluates AdaBoost and its relatives: members are weighted by how often they were right."""

    def _vote(self, X: Array) -> Array:
        model = self.model
        votes = self._members.votes(X, model.data)
        if type(model) is ensemble.BOLEClassifier:
            weights = [self._bole_weight(i) for i in range(len(votes))]
            # A weight of 0 is none; where no member has one, all count the same.
            weighted = [vote * weight for vote, weight in zip(votes, weights, strict=True) if weight]
            return _normalised(_sum(weighted or votes, X))
        return _normalised(_sum([vote * self._weight(i) for i, vote in enumerate(votes)], X))

    def _weight(self, i: int) -> float:
        wrong, correct = self.model.wrong_weight.get(i, 0), self.model.correct_weight.get(i, 0)
        epsilon = (wrong + 1e-16) / ((correct + wrong) + 1e-16)
        if epsilon == 0 or epsilon > 0.5:
            return 1.0
        beta_inverse = (1 - epsilon) / epsilon
        return math.log(beta_inverse) if beta_inverse != 0 else 0.0

    def _bole_weight(self, i: int) -> float:
        wrong, correct = self.model.wrong_weight.get(i, 0), self.model.correct_weight.get(i, 0)
        if not (correct > 0.0 and wrong > 0.0):
            return 0.0
        epsilon = wrong / (correct + wrong) + 1e-16
        return math.log((1 - epsilon) / epsilon) if epsilon <= self.model.error_bound else 0.0


class PatchesClassifierEvaluator(_ClassifierEvaluator):
    """Evaluates `ensemble.SRPClassifier`: each member sees some of the features."""

    def _prepare(self) -> None:
        _check_patches(self.model, BaseSRPClassifier)

    def _vote(self, X: Array) -> Array:
        model = self.model
        members = _check_patches(model, BaseSRPClassifier)
        votes = self._members.votes(X, [m.model for m in members], [m.features for m in members])
        if not model.disable_weighted_vote:
            values = [member.metric.get() for member in members]
            votes = [vote * value if value > 0.0 else vote for vote, value in zip(votes, values, strict=True)]
        return _normalised(_sum(votes, X))


class PatchesRegressorEvaluator(_EnsembleEvaluator):
    """Evaluates `ensemble.SRPRegressor`: each member sees some of the features."""

    def _prepare(self) -> None:
        _check_patches(self.model, BaseSRPRegressor)

    def _combine(self, X: Array) -> Array:
        model = self.model
        members = _check_patches(model, BaseSRPRegressor)
        if len(members) not in (0, model.n_models):
            raise NotCoveredError("another number of members than said")
        if not members:
            return np.zeros((len(X), 1))
        y = np.hstack(self._members.predict(X, [m.model for m in members], [m.features for m in members]))
        if model.aggregation_method != "mean":
            return np.median(y, axis=1)[:, None]
        weights = np.ones(len(members))
        if not model.disable_weighted_vote:
            weights = np.array([max(member.metric.get(), 0.0) for member in members], dtype=np.float64)
            if not model.metric.bigger_is_better:
                weights = -(weights - max(weights))
            if sum(weights) == 0:
                return np.zeros((len(X), 1))
        average: Array = np.average(y, axis=1, weights=weights)[:, None]
        return average


class AverageEvaluator(_EnsembleEvaluator):
    """Evaluates bagging regressors, and regressors with weights: `EWARegressor`."""

    def _combine(self, X: Array) -> Array:
        model = self.model
        predictions = self._members.predict(X, model.data)
        if type(model) is ensemble.EWARegressor:
            P = np.zeros((len(X), 1))
            for prediction, weight in zip(predictions, model.weights, strict=False):
                P += prediction * weight
            return P
        return exact_mean(np.hstack(predictions))


def _sum(votes: list[Array], X: Array) -> Array:
    if not votes:
        return np.zeros((len(X), 0))
    total = votes[0].copy()
    for vote in votes[1:]:
        total += vote
    return total


def _normalised(P: Array) -> Array:
    """Return rows divided by their sums; a row that sums to 0 stays as it is."""
    total = P.sum(axis=1, keepdims=True)
    return P / np.where(total > 0.0, total, 1.0)


def _check_patches(model: Any, kind: type) -> Any:
    for member in model.data:
        if type(member) is not kind:
            raise NotCoveredError(f"a member of the type {type(member).__name__}")
    return model.data


def _bagging(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of a bag: trees together in one kernel, other members one by one."""
    try:
        return forest_of_trees(model, schema)
    except NotCoveredError:
        return BaggingEvaluator(model, schema)


def _averaging(model: Any, schema: Schema) -> Evaluator:
    """Return the evaluator of a regressor that averages: trees together in one kernel, other members one by one."""
    try:
        return mean_of_trees(model, schema)
    except NotCoveredError:
        return AverageEvaluator(model, schema)


def _members(model: Any) -> list[Any]:
    members: list[Any] = model.data
    return members


def _patches(model: Any) -> list[Any]:
    return [member.model for member in model.data] or [model.model]


_of_members: dict[str, Any] = {
    "categorical": lambda model: categories_of_all(_members(model)),
    "numbers": lambda model: numbers_of_all(_members(model)),
    "gaps": True,
}
_of_patches: dict[str, Any] = {
    "categorical": lambda model: categories_of_all(_patches(model)),
    "numbers": lambda model: numbers_of_all(_patches(model)),
    "gaps": True,
}

register(
    ensemble.BaggingClassifier, ensemble.ADWINBaggingClassifier, ensemble.LeveragingBaggingClassifier, **_of_members
)(_bagging)
register(ensemble.AdaBoostClassifier, ensemble.ADWINBoostingClassifier, ensemble.BOLEClassifier, **_of_members)(
    BoostingEvaluator
)
register(ensemble.BaggingRegressor, ensemble.EWARegressor, **_of_members)(_averaging)
register(ensemble.SRPClassifier, **_of_patches)(PatchesClassifierEvaluator)
register(ensemble.SRPRegressor, **_of_patches)(PatchesRegressorEvaluator)
