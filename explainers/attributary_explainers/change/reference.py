"""Holds the reference that a change is measured against, and measures the change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..batch.contributions import Contributions, pfi_contributions, sage_contributions
from ..batch.tables import BatchImportance, DataTable
from ..errors import InvalidParameterError
from ..losses.losses import Loss
from ..models.function import is_classifier, model_function, resolve_loss
from ..pickling import dump_model, load_model
from ..predictions import is_usable, predict_rows
from ..typing import Features, Groups, Importance, Snapshot
from ..validation import check_choice
from .discrepancy import Distance, expected_discrepancy
from .importance import ImportanceChange

Data = Sequence[tuple[Features, Any]]

METHODS = ("pfi", "sage")
"""Names of the methods by which a change in importance is measured."""


def check_methods(importances: Sequence[str]) -> tuple[str, ...]:
    """Return the names of methods as a tuple; InvalidParameterError where one is unknown or given twice."""
    methods = (importances,) if isinstance(importances, str) else tuple(importances)
    for method in methods:
        check_choice("importances", method, METHODS)
    if len(set(methods)) < len(methods):
        raise InvalidParameterError("importances", "each method once", importances)
    return methods


def loss_of_importances(model: Any, loss: str | Loss | Callable[[Any, Any], float] | None, *, sage: bool) -> Loss:
    """Return the loss to take importances in; None stands for zero_one for a classifier; with SAGE for its default.

    The bias of few draws, which SAGE has and PFI has not, is not corrected for zero_one.
    """
    plain = loss is None and is_classifier(model) and not sage
    return resolve_loss(model, "zero_one" if plain else loss)


@dataclass(frozen=True)
class Measure:
    """Measures how far two models are apart on a data set, and the importances of models there."""

    methods: tuple[str, ...]
    distance: Distance
    loss: Loss
    groups: Groups
    n_permutations: int
    n_samples: int

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments as plain data."""
        return {
            "importances": list(self.methods),
            "distance": self.distance.name,
            "loss": self.loss.name,
            "groups": {group: list(features) for group, features in self.groups.items()},
            "n_permutations": self.n_permutations,
            "n_samples": self.n_samples,
        }

    def discrepancy(self, old: Any, new: Any, data: Data) -> tuple[float, int]:
        """Return the mean distance between the models' predictions, and the number of observations in the mean."""
        functions = [model_function(model, self.distance.output) for model in (old, new)]
        return expected_discrepancy(functions[0], functions[1], [x for x, _ in data], self.distance)

    def losses_on(self, model: Any, data: Data) -> npt.NDArray[np.float64]:
        """Return the losses of a model on data, without rows for which it has no prediction or no finite loss."""
        predictions = predict_rows(model_function(model, self.loss.output), [x for x, _ in data])
        losses = [self.loss(y, p) for (_, y), p in zip(data, predictions, strict=True) if is_usable(p)]
        return np.array([loss for loss in losses if math.isfinite(loss)], dtype=np.float64)

    def take(self, models: Sequence[Any], data: Data, seed: int) -> dict[str, list[Contributions]]:
        """Return, by method, the contributions under every model, on the same rows and draws.

        Raises
        ------
        InvalidParameterError, NoPredictionError
            As for `batch_pfi`.
        """
        taken: dict[str, list[Contributions]] = {}
        tables = [DataTable(model, data, self.loss, self.groups) for model in models]
        if not self.methods:  # what is not explained has to predict, too
            for table in tables:
                table.predictions(table.xs)
        for method in self.methods:
            rng = np.random.default_rng(seed)
            if method == "pfi":
                taken[method] = pfi_contributions(tables, self.n_permutations, rng)
            else:
                taken[method] = sage_contributions(tables, self.n_samples, rng)
        return taken


@dataclass(frozen=True)
class MeasuredImportance:
    """Holds the importance of a model on a data set, by one method, and the model's mean loss there."""

    importance: Importance
    std_error: Importance
    loss: float
    loss_std_error: float
    n_observations: int

    @classmethod
    def of(cls, found: Contributions) -> Self:
        """Sum up the contributions of single observations."""
        return cls(found.importance, found.std_error, found.loss, found.loss_std_error, found.own.shape[1])

    @property
    def batch(self) -> BatchImportance:
        """Importance and standard error, without the loss."""
        return BatchImportance(dict(self.importance), dict(self.std_error), self.n_observations)


def importances_under(taken: Mapping[str, Sequence[Contributions]], place: int) -> dict[str, MeasuredImportance]:
    """Return, by method, the importance under the model at `place` in the list that was given to `take`."""
    return {method: MeasuredImportance.of(found[place]) for method, found in taken.items()}


class Reference:
    """Holds the reference model, its data and its importances: h_r, D_r and phi_r.

    The model never changes, so it is turned into bytes once.
    """

    def __init__(
        self, model: Any, data: Data, measured: dict[str, MeasuredImportance], n_observations: int, version: str | None
    ) -> None:
        self.model = model
        self.data: list[tuple[Features, Any]] = list(data)
        self.measured = measured
        self.n_observations = n_observations
        self.version = version
        self.has_learnt = True
        """Whether the model has learnt `data`."""
        self.unlearnt: list[tuple[Features, Any]] = []
        """The first observations after the reference was taken, which its model has not learnt."""
        self._bytes: bytes | None = None

    def add_next(self, x: Features, y: Any) -> None:
        """Add an observation from after the reference was taken and before any alarm; only the first ones are kept."""
        if self.has_learnt and len(self.unlearnt) < len(self.data):
            self.unlearnt.append((dict(x), y))

    def memorised(self, measure: Measure) -> tuple[float | None, float]:
        """Return how much larger the loss is on later observations than on the reference's data, with standard error.

        Both are 0 where the model has not learnt its data; the first is None where too few observations have come.
        """
        if not self.has_learnt:
            return 0.0, 0.0
        if not self.measured or len(self.unlearnt) < max(2, len(self.data) // 2):
            return None, 0.0
        losses, own = measure.losses_on(self.model, self.unlearnt), next(iter(self.measured.values()))
        if len(losses) < 2:
            return None, 0.0
        error = float(losses.std(ddof=1)) / math.sqrt(len(losses))
        return float(losses.mean()) - own.loss, math.hypot(error, own.loss_std_error)

    def with_data(self, data: Data, measured: dict[str, MeasuredImportance]) -> Reference:
        """Return a reference with the same model and other data."""
        other = Reference(self.model, data, measured, self.n_observations, self.version)
        other.unlearnt = other.data  # none of them has been learnt
        other._bytes = self._bytes
        return other

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from; the model as bytes."""
        if self._bytes is None:
            self._bytes = dump_model(self.model)
        return {
            "model": self._bytes,
            "data": [(dict(x), y) for x, y in self.data],
            "measured": {
                method: [dict(m.importance), dict(m.std_error), m.loss, m.loss_std_error, m.n_observations]
                for method, m in self.measured.items()
            },
            "has_learnt": self.has_learnt,
            "unlearnt": [(dict(x), y) for x, y in self.unlearnt],
            "n_observations": self.n_observations,
            "version": self.version,
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Reference:
        """Return the reference that the snapshot was taken of."""
        measured = {method: MeasuredImportance(*values) for method, values in snapshot["measured"].items()}
        data = [(dict(x), y) for x, y in snapshot["data"]]
        reference = cls(load_model(snapshot["model"]), data, measured, snapshot["n_observations"], snapshot["version"])
        reference.has_learnt = snapshot["has_learnt"]
        reference.unlearnt = [(dict(x), y) for x, y in snapshot["unlearnt"]]
        return reference


def change_between(
    before: Mapping[str, MeasuredImportance],
    taken: Mapping[str, list[Contributions]],
    loss: Loss,
    memorised: tuple[float | None, float],
) -> dict[str, ImportanceChange]:
    """Return, by method, the change from the reference on its data to the current model on the new data.

    Parameters
    ----------
    before
        Reference model on its data.
    taken
        Reference and current model on the new data.
    memorised
        How much better the reference model is on its own data than on others of that time, and the standard error; see
        `Reference.memorised`.
    """
    changes = {}
    for method, (reference_on_new_data, after) in taken.items():
        then, now = before[method], MeasuredImportance.of(after)
        there = MeasuredImportance.of(reference_on_new_data)
        changes[method] = _change(
            method,
            loss,
            (then, there, now),
            memorised=memorised,
            model_part=after.minus(reference_on_new_data).std_error,
            data_part=_independent(then.std_error, there.std_error),
            delta=_independent(then.std_error, now.std_error),
        )
    return changes


def change_on_one_data_set(taken: Mapping[str, list[Contributions]], loss: Loss) -> dict[str, ImportanceChange]:
    """Return, by method, the change from the first model to the second, where both are given the same data."""
    changes = {}
    for method, (old, new) in taken.items():
        then, now, paired = MeasuredImportance.of(old), MeasuredImportance.of(new), new.minus(old).std_error
        nothing = dict.fromkeys(paired, 0.0)
        changes[method] = _change(method, loss, (then, then, now), model_part=paired, data_part=nothing, delta=paired)
    return changes


def _change(
    method: str,
    loss: Loss,
    measured: tuple[MeasuredImportance, MeasuredImportance, MeasuredImportance],
    *,
    model_part: Importance,
    data_part: Importance,
    delta: Importance,
    memorised: tuple[float | None, float] = (0.0, 0.0),
) -> ImportanceChange:
    before, on_new_data, after = measured
    return ImportanceChange(
        method=method,
        loss=loss.name,
        loss_unit=loss.unit,
        loss_largest=loss.largest,
        before=dict(before.importance),
        crossed=dict(on_new_data.importance),
        after=dict(after.importance),
        before_std_error=dict(before.std_error),
        crossed_std_error=dict(on_new_data.std_error),
        after_std_error=dict(after.std_error),
        model_part_std_error=model_part,
        data_part_std_error=data_part,
        delta_std_error=delta,
        before_loss=before.loss,
        crossed_loss=on_new_data.loss,
        after_loss=after.loss,
        memorised=memorised[0],
        memorised_std_error=memorised[1],
    )


def _independent(a: Importance, b: Importance) -> Importance:
    """Return the standard error of a difference between estimates from two data sets.

    A feature that one of them does not know adds none.
    """
    return {f: float(np.hypot(a.get(f, 0.0), b.get(f, 0.0))) for f in dict.fromkeys((*a, *b))}
