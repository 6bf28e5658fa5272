"""Fast path of linear models, alone or behind scalers and one-hot encoders: one kernel from rows to predictions."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Any

import numpy as np

from ...compiled import compiled
from ...evaluation.evaluator import Evaluator, NotCoveredError
from ...evaluation.registry import register
from ...evaluation.schema import Schema
from ...typing import Array, Ints
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

    def predict(self, X: Array) -> Array:
        """See `Evaluator`."""
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
        if len(values) != self._values.size:
            self._values = Parameters(len(values))
        self._values.fill(values)
        if len(P) != len(X) or n_outputs != self._n_outputs:
            P = self._P = np.empty((len(X), 2 if self._kind.link == SIGMOID else n_outputs))
            self._n_outputs = n_outputs
        way = plan.source, self._tables, self._offsets, plan.depth, root
        if not _predict(X, *way, self._values.array, self._kind.link, P):
            raise NotCoveredError("the root of a variance is no number, as that is below 0, or a sum is not finite")
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


@compiled
def _predict(
    X: Array, source: Ints, tables: Ints, offsets: Ints, depth: int, root: float, values: Array, link: int, P: Array
) -> bool:
    """Write the predictions for rows; False where a divisor is no number, or the sum of a class not finite.

    `values` has what is subtracted, depth by depth; the divisors, as powers of which `root` is the exponent that gives
    them; the weights and the intercept of each output.
    """
    n = source.shape[0]
    first = 2 * depth * n
    n_outputs = P.shape[1]
    if link == SIGMOID:
        n_outputs = 1
    width = (values.shape[0] - first) // n_outputs if n_outputs else 0
    # Once per call, so that the rows are multiplied only; a divisor of 0 gives 0.
    for i in range(depth * n, first):
        if root != 1.0:
            values[i] = math.pow(values[i], root)
            if values[i] != values[i]:
                return False
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
                if not abs(P[r, c]) < np.inf:
                    return False
                greatest = max(greatest, P[r, c])
            total = 0.0
            for c in range(n_outputs):
                P[r, c] = np.exp(P[r, c] - greatest)
                total += P[r, c]
            for c in range(n_outputs):
                P[r, c] /= total
    return True


register(*KINDS, gaps=True)(LinearEvaluator)
