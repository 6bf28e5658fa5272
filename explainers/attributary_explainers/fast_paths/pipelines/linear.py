"""Fast path of linear models, alone or behind scalers and one-hot encoders: one kernel from rows to predictions."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from ...evaluation.evaluator import Evaluator, NotCoveredError
from ...evaluation.registry import register
from ...evaluation.schema import Schema
from ...typing import Array, Ints
from .linear_at_once import AtOnce, predict_at_once
from .linear_kernels import predict_rows
from .linear_models import KINDS, SIGMOID, SOFTMAX, glm_weights
from .names import Names
from .transforms import Parameters, Plan

_ABSENT = object()  # no model has a weight for it


class LinearEvaluator(Evaluator):
    """Evaluates a linear model on the columns of a plan.

    The sum over the features runs in the order of their names, and River's in the order of the row: where terms cancel
    that are a thousand times larger than their sum, both have a rounding error of more than 1e-13 of it.

    Parameters
    ----------
    plan
        The columns that the transformers before the model make; without a plan, the model sees the rows.

    Raises
    ------
    NotCoveredError
        A feature has categories and is not encoded; the loss has a link that is not covered.
    """

    def __init__(self, model: Any, schema: Schema, plan: Plan | None = None) -> None:
        self.model, self.schema = model, schema
        self._kind = KINDS[type(model)]
        self._plan = plan = Plan(schema) if plan is None else plan
        if plan.has_codes:
            raise NotCoveredError("a linear model gets categories")
        if any(column.encoder.drop_first for column in plan.one_hot):
            raise NotCoveredError("drop_first before a linear model")
        if self._kind.link == SIGMOID:
            self.labels = (False, True)
        self._values = Parameters(0)
        self._P: Array = np.empty((0, 0))
        self._n_outputs = 0
        self._lay_out(self._count())
        self._standardised = Standardised.of(model, plan)
        self._at_once = AtOnce.of(model, plan)
        self._X: Array | None = None
        """The rows that compiled code knows, and writes the predictions for: those of an observation after another."""
        self._address = 0

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        if X is self._X and predict_at_once(self._address):
            return self._P
        self._X = None
        P = self._predict(X)
        if self._at_once is not None:
            self._address = self._at_once.address(X, P)
            self._X = X if self._address else None
        return P

    def _predict(self, X: Array) -> Array:
        """Predict by what Python reads."""
        plan, P, root, n_outputs = self._plan, self._P, 0.5, 1
        values = None if self._standardised is None else self._standardised.read()
        if values is None:
            root, weights = 1.0, self._kind.weights(self.model)
            if self._kind.link == SOFTMAX:
                self.labels = tuple(label for label, _, _ in weights)
            if plan.checks:
                X = plan.checked(X)
            if plan.one_hot and (self._count() != self._sizes or self._restricted):
                self._lay_out(self._count())
            values = plan.parameters()
            for (_, of_class, intercept), names in zip(weights, self._named(len(weights)), strict=False):
                values += names.read(of_class)
                values.append(intercept)
            n_outputs = len(weights)
            if self._kind.leaves_out and plan.depth and not all(names.has_all for names in self._read[:n_outputs]):
                self._leave_out([of_class for _, of_class, _ in weights], values)
        if len(values) != self._values.size:
            self._values = Parameters(len(values))
        self._values.fill(values)
        if len(P) != len(X) or n_outputs != self._n_outputs:
            P = self._P = np.empty((len(X), 2 if self._kind.link == SIGMOID else n_outputs))
            self._n_outputs = n_outputs
        way = plan.source, self._tables, self._offsets, plan.depth, root
        if not predict_rows(X, *way, self._values.array, self._kind.link, P):
            raise NotCoveredError("the root of a variance is no number, as that is below 0, or a sum is not finite")
        return P

    def _leave_out(self, weights: list[Any], values: list[float]) -> None:
        """Let columns without a weight be 0: a scaler that does not know the feature would make them NaN."""
        n, depth = len(self._plan.numbers), self._plan.depth
        for i, column in enumerate(self._plan.numbers):
            if not any(column.name in of_class for of_class in weights):
                for k in range(depth):
                    values[k * n + i], values[(depth + k) * n + i] = 0.0, 1.0

    def _named(self, n_sets: int) -> list[Names]:
        """Return what looks up the weights, one for each set of them at least."""
        while len(self._read) < n_sets:
            self._read.append(Names(self._names))
        return self._read

    def _count(self) -> list[int]:
        codes = self.schema.codes
        return [len(codes[column.source]) for column in self._plan.one_hot]

    def _lay_out(self, sizes: list[int]) -> None:
        """Give each number a weight, then each category of every one-hot encoded feature."""
        plan = self._plan
        names = [column.name for column in plan.numbers]
        taken = set(names)
        offsets = []
        self._restricted = False
        for column in plan.one_hot:
            offsets.append(len(names))
            values = self.schema.values(column.source)
            made = {column.name(value) for value in values}
            if made & taken:
                raise NotCoveredError("two columns have the same name")
            taken |= made
            kept = column.encoder.categories
            if kept is None:
                names += [column.name(value) for value in values]
            else:
                self._restricted = True
                names += [column.name(value) if value in kept[column.feature] else _ABSENT for value in values]
        self._names, self._sizes = names, sizes
        self._read: list[Names] = []
        self._tables: Ints = np.array([column.source for column in plan.one_hot], dtype=np.int64)
        self._offsets: Ints = np.array(offsets, dtype=np.int64)


class Standardised:
    """Reads a standard scaler and a linear model behind it in one go: most linear models have it alone before them.

    Parameters
    ----------
    model
        A generalised linear model.
    scaler
        One of all its features, without a window.
    names
        The features, two at least, as both of them know them.
    """

    def __init__(self, model: Any, scaler: Any, names: tuple[Any, ...]) -> None:
        self._model, self._scaler, self._names, self._get = model, scaler, names, itemgetter(*names)
        self._seen: tuple[Any, ...] = (None,) * 4
        self._lengths = -1, -1, -1

    @classmethod
    def of(cls, model: Any, plan: Plan) -> Standardised | None:
        """Return what reads the two; None where other things are to be read."""
        scaler = plan.only_standard_scaler
        if KINDS[type(model)].weights is not glm_weights or scaler is None or len(plan.numbers) < 2:
            return None
        return cls(model, scaler, tuple(column.name for column in plan.numbers))

    def read(self) -> list[float] | None:
        """Return means, variances, weights and intercept; None where they are not all there, or no plain floats."""
        scaler, model = self._scaler, self._model
        means, variances, weights = scaler.means, scaler.vars, model._weights
        seen = self._seen
        if (
            means is not seen[0]
            or variances is not seen[1]
            or weights is not seen[2]
            or model.loss is not seen[3]
            or (len(means), len(variances), len(weights)) != self._lengths
        ):
            glm_weights(model)
            if not all(name in means and name in variances and name in weights for name in self._names):
                return None
            self._seen = means, variances, weights, model.loss
            self._lengths = len(means), len(variances), len(weights)
        get = self._get
        try:
            of_variances = get(variances)
            # The root of numpy's floats is another one than that of Python's.
            if type(sum(of_variances)) is not float:
                return None
            return [*get(means), *of_variances, *get(weights), model.intercept]
        except KeyError:  # one has been taken out, and another one put in
            self._lengths = -1, -1, -1
            return None


register(*KINDS, gaps=True)(LinearEvaluator)
