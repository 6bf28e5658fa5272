"""Fast path of linear models, alone or behind scalers and one-hot encoders: one kernel from rows to predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled
from ...evaluation.evaluator import Evaluator, NotCoveredError
from ...evaluation.registry import register
from ...evaluation.schema import Schema
from ...typing import Array, Ints
from .linear_models import KINDS, SIGMOID, SOFTMAX
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
        self._lay_out(self._count())

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
        kind, plan = self._kind, self._plan
        weights = kind.weights(self.model)
        if kind.link == SOFTMAX:
            self.labels = tuple(label for label, _, _ in weights)
        if plan.checks:
            X = plan.checked(X)
        if plan.one_hot and (self._count() != self._sizes or self._restricted):
            self._lay_out(self._count())
        values = plan.parameters()
        for (_, of_class, intercept), names in zip(weights, self._named(len(weights)), strict=False):
            values += names.read(of_class)
            values.append(intercept)
        if len(values) != self._values.size:
            self._values = Parameters(len(values))
        self._values.fill(values)
        P, shape = self._P, (len(X), 2 if kind.link == SIGMOID else len(weights))
        if P.shape != shape:
            P = self._P = np.empty(shape)
        _predict(X, plan.source, self._tables, self._offsets, plan.depth, self._values.array, kind.link, P)
        return P

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


@compiled
def _predict(
    X: Array, source: Ints, tables: Ints, offsets: Ints, depth: int, values: Array, link: int, P: Array
) -> None:
    n = source.shape[0]
    first = 2 * depth * n
    n_outputs = P.shape[1]
    if link == SIGMOID:
        n_outputs = 1
    width = (values.shape[0] - first) // n_outputs if n_outputs else 0
    # Once per call, so that the rows are multiplied only; a divisor of 0 gives 0.
    for i in range(depth * n, first):
        values[i] = 1.0 / values[i] if values[i] != 0.0 else 0.0
    if depth:
        for c in range(n_outputs):
            for t in range(n):
                values[first + c * width + t] *= values[first - n + t]
    for r in range(X.shape[0]):
        for c in range(n_outputs):
            w = first + c * width
            score = 0.0
            if depth == 0:
                for t in range(n):
                    z = X[r, source[t]]
                    if z == z:  # or else the row lacks the feature
                        score += z * values[w + t]
            elif depth == 1:
                for t in range(n):
                    z = X[r, source[t]]
                    if z == z:
                        score += (z - values[t]) * values[w + t]
            else:
                for t in range(n):
                    z = X[r, source[t]]
                    if z != z:
                        continue
                    for k in range(depth - 1):
                        z = (z - values[k * n + t]) * values[(depth + k) * n + t]
                    score += (z - values[(depth - 1) * n + t]) * values[w + t]
            for q in range(tables.shape[0]):
                code = X[r, tables[q]]
                if code == code:
                    score += values[w + offsets[q] + int(code)]
            P[r, c] = score + values[w + width - 1]
        if link == SIGMOID:
            score = P[r, 0]
            if score < -30.0:
                p = 0.0
            elif score > 30.0:
                p = 1.0
            else:
                p = 1.0 / (1.0 + np.exp(-score))
            P[r, 0] = 1.0 - p
            P[r, 1] = p
        elif link == SOFTMAX:
            greatest = -np.inf
            for c in range(n_outputs):
                greatest = max(greatest, P[r, c])
            total = 0.0
            for c in range(n_outputs):
                P[r, c] = np.exp(P[r, c] - greatest)
                total += P[r, c]
            for c in range(n_outputs):
                P[r, c] /= total


register(*KINDS, gaps=True)(LinearEvaluator)
