"""Measures models' importances on the same rows, and their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..batch.contributions import Contributions, pfi_steps, sage_steps
from ..batch.mixing import BLOCK
from ..batch.slices import Steps
from ..batch.tables import DataTable
from ..errors import InvalidParameterError
from ..losses.losses import Loss
from ..predictions import label_of
from ..typing import Features, Groups, Importance
from ..validation import check_choice
from .importance import ImportanceChange

Data = Sequence[tuple[Features, Any]]

METHODS = ("pfi", "sage")
"""Names of the methods by which a change in importance is measured."""


_MOST_NS = 1e9
"""What exact values of a forest may take, a second: beyond it they are sampled."""


def check_methods(importances: Sequence[str]) -> tuple[str, ...]:
    """Return known, distinct methods, or raise InvalidParameterError."""
    methods = (importances,) if isinstance(importances, str) else tuple(importances)
    for method in methods:
        check_choice("importances", method, METHODS)
    if len(set(methods)) < len(methods):
        raise InvalidParameterError("importances", "each method once", importances)
    return methods


@dataclass(frozen=True)
class Measure:
    """Measures the importances of models on a data set."""

    methods: tuple[str, ...]
    loss: Loss
    groups: Groups
    n_permutations: int
    n_samples: int
    own_labels: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor arguments as plain data; `own_labels` only where it is set."""
        return {
            **({"own_labels": True} if self.own_labels else {}),
            "importances": list(self.methods),
            "loss": self.loss.name,
            "groups": {group: list(features) for group, features in self.groups.items()},
            "n_permutations": self.n_permutations,
            "n_samples": self.n_samples,
        }

    def steps(
        self, models: Sequence[Any], data: Data, seed: int, size: int = BLOCK
    ) -> Steps[dict[str, list[Contributions]]]:
        """Find every model's contributions, by method, on the same draws.

        The rows are the same, too; a slice has `size` of them. Where every model is a forest whose leaves give the
        exact value at little cost, nothing is drawn.

        Raises
        ------
        InvalidParameterError, NoPredictionError
            As for `batch_pfi`.
        """
        taken: dict[str, list[Contributions]] = {}
        tables = [DataTable(model, data, self.loss, self.groups) for model in models]
        for table in tables:  # what is not explained has to predict, too
            yield from table.own_steps(size)
            if self.own_labels:
                table.ys = [label_of(y_pred) for y_pred in table.own_predictions]
        for method in self.methods:
            rng = np.random.default_rng(seed)
            if method == "pfi":
                steps = pfi_steps(tables, self.n_permutations, rng, most_ns=_MOST_NS, size=size)
            else:
                each = max(size // len(tables), 1)
                steps = sage_steps(tables, self.n_samples, rng, most_ns=_MOST_NS, size=each)
            taken[method] = yield from steps
        return taken

    def n_rows(self, n: int, d: int) -> int:
        """Return about how many rows n observations of d features take, sampled."""
        of_each = {"pfi": self.n_permutations * d, "sage": self.n_samples * (d - 1)}
        return n * (1 + sum(of_each[method] for method in self.methods))

    def compare_steps(
        self,
        old: Any,
        new: Any,
        data: Data,
        seed: int,
        *,
        before: Data | None = None,
        margin: float = 0.0,
        size: int = BLOCK,
    ) -> Steps[dict[str, ImportanceChange]]:
        """Find, by method, the change from the first model to the second.

        The observations are such that neither model has learnt; `before` has earlier ones for the first model. Without
        them both are evaluated on the same rows and draws. `margin` is the share of the total importance, the larger of
        the two models' sums of positive ones, that is no change. A slice has `size` rows.
        """
        found = {}
        if before is None:
            taken = yield from self.steps([old, new], data, seed, size)
        else:
            then = yield from self.steps([old], before, seed, size)
            now = yield from self.steps([new], data, seed, size)
            taken = {method: [then[method][0], now[method][0]] for method in now}
        for method, (a, b) in taken.items():
            total = max(sum(max(v, 0.0) for v in of.importance.values()) for of in (a, b))
            error = b.minus(a).std_error if before is None else independent(a.std_error, b.std_error)
            found[method] = change_of(method, self.loss, a, b, error, margin * total, is_paired=before is None)
        return found


def change_of(
    method: str,
    loss: Loss,
    before: Contributions,
    after: Contributions,
    std_error: Importance,
    margin: float = 0.0,
    *,
    is_paired: bool = False,
) -> ImportanceChange:
    """Return the importance change between two contributions."""
    return ImportanceChange(
        method=method,
        loss=loss.name,
        loss_unit=loss.unit,
        loss_largest=loss.largest,
        n_observations=after.own.shape[1],
        before=before.importance,
        after=after.importance,
        before_std_error=before.std_error,
        after_std_error=after.std_error,
        delta_std_error=std_error,
        before_loss=before.loss,
        after_loss=after.loss,
        margin=margin,
        is_paired=is_paired,
    )


def independent(a: Importance, b: Importance) -> Importance:
    """Return the standard error of a difference between two data sets.

    A feature that one of them does not know adds none.
    """
    return {f: float(np.hypot(a.get(f, 0.0), b.get(f, 0.0))) for f in dict.fromkeys((*a, *b))}
