"""What all incremental explainers share: the model, the loss, the reservoir, smoothing, snapshots."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from .errors import InvalidParameterError, SnapshotError
from .losses import LOSS_NAMES, Loss, as_loss
from .models import is_usable, model_function, resolve_loss
from .reservoirs import GeometricReservoir, Reservoir
from .smoothing import SmoothedImportance
from .typing import Features, Groups, Importance, Prediction, Snapshot
from .validation import check_groups, check_integer

SNAPSHOT_FORMAT = 1


class IncrementalExplainer(abc.ABC):
    """Global feature importance, updated with every observation.

    Call `explain_one(x, y)` once per observation, before the model learns it: the reservoir must not hold the
    observation that is explained, and the loss is that of a prediction made without having seen `y`
    (iSAGE Algorithm 6: predict, score, explain, learn).

    Parameters
    ----------
    model
        River classifier, regressor or anomaly detector, pipeline, or callable `x -> prediction`. The
        explainer keeps a reference and only ever predicts with it: it always explains the model as it is now.
    loss
        Name, `Loss` or callable `(y, prediction) -> float`; None takes cross_entropy, squared or score by the
        kind of model. Importance is in its unit.
    alpha
        Valid range (0, 1]. Larger follows change faster and is noisier; 2 / (N + 1) is a window of N
        observations, so the default 0.001 is a window of about 2000.
    n_samples
        Valid range >= 1. Draws per feature (PFI) or coalition (SAGE). Larger lowers the variance, and for SAGE
        the bias; the cost in model evaluations is proportional.
    reservoir
        Where replacements are drawn from; None is `GeometricReservoir(100)`. The explainer owns it.
    groups
        Group name to the features that are removed together, as the one-hot columns of a category are.
        Features in no group stand alone. A group name must differ from every feature.
    seed
        Seed of the explainer's own generator; equal seeds, parameters and streams give equal importance.

    Raises
    ------
    InvalidParameterError
        A parameter is out of its range.
    ModelError
        The loss needs an output that the model does not have.
    """

    name: ClassVar[str]

    def __init__(
        self,
        model: Any,
        *,
        loss: str | Loss | Callable[[Any, Any], float] | None = None,
        alpha: float = 0.001,
        n_samples: int = 10,
        reservoir: Reservoir | None = None,
        groups: Groups | None = None,
        seed: int | None = None,
    ) -> None:
        self.model = model
        self.loss = resolve_loss(model, loss)
        self.n_samples = check_integer("n_samples", n_samples, minimum=1)
        self.reservoir = GeometricReservoir() if reservoir is None else reservoir
        self.groups = check_groups(groups)
        self.n_skipped = 0
        self._smoothed = SmoothedImportance(alpha)
        self._rng = np.random.default_rng(seed)
        self._group_of = {feature: group for group, features in self.groups.items() for feature in features}
        self._function = model_function(model, self.loss.output)

    @property
    def alpha(self) -> float:
        """Smoothing factor."""
        return self._smoothed.weights.alpha

    @property
    def n_observations(self) -> int:
        """Observations that importance is made of; `n_skipped` more could not be explained."""
        return self._smoothed.weights.n

    @property
    def importance(self) -> Importance:
        """Importance per feature or group, bias-corrected: a weighted mean whose weights sum to 1."""
        return self._smoothed.mean()

    @property
    def raw_importance(self) -> Importance:
        """The papers' recursion from 0; smaller than `importance` by 1 - (1 - alpha)^n (iPFI Theorem 2)."""
        return self._smoothed.raw_mean()

    @property
    def std_error(self) -> Importance:
        """Standard error of `importance`; NaN before the second observation."""
        return self._smoothed.std_error()

    def explain_one(self, x: Features, y: Any = None, *, y_pred: Prediction = None) -> Importance:
        """Update the importance with one observation and return it.

        Parameters
        ----------
        x
            Features of the observation; not kept, not changed.
        y
            Its label or target; not read by the loss `score`.
        y_pred
            The model's prediction for `x`, in the form that the loss reads, where the caller has it already:
            saves one evaluation. None evaluates the model.

        Returns
        -------
        Importance
            Feature or group to importance. Empty until there is a row to draw from and the model predicts.
        """
        if self._is_explainable(x) and is_usable(y_pred := self._function(x) if y_pred is None else y_pred):
            increments = self._increments(x, y, y_pred)
            if increments is not None and all(map(math.isfinite, increments.values())):
                self._smoothed.update(increments)
            else:
                self.n_skipped += 1
        else:
            self.n_skipped += 1
        self.reservoir.update(x, self._rng)
        return self.importance

    def _is_explainable(self, x: Features) -> bool:
        return bool(x) and len(self.reservoir) > 0

    @abc.abstractmethod
    def _increments(self, x: Features, y: Any, y_pred: Prediction) -> Importance | None:
        """This observation's own importances, or None when a prediction that it needs is missing."""

    def _evaluate(self, rows: Sequence[Features]) -> list[Prediction]:
        return [self._function(row) for row in rows]

    def _players(self, x: Features) -> dict[Any, Sequence[Any]]:
        """What is removed at a time: feature or group to its features, in the order of `x`.

        A declared group always plays, even where `x` has none of its features: sparse one-hot columns.
        """
        if not self.groups:
            return {feature: (feature,) for feature in x}
        players: dict[Any, Sequence[Any]] = {}
        for feature in x:
            player = self._group_of.get(feature)
            if player is None:
                if feature in self.groups:
                    raise InvalidParameterError("groups", "names that no feature has", feature)
                players[feature] = (feature,)
            else:
                players[player] = self.groups[player]
        players.update((name, features) for name, features in self.groups.items() if name not in players)
        return players

    @property
    def parameters(self) -> dict[str, Any]:
        """What the explainer was made with, as plain data: two explainers with equal parameters can share
        a snapshot."""
        return {
            "loss": self.loss.name,
            "alpha": self.alpha,
            "n_samples": self.n_samples,
            "reservoir": self.reservoir.name,
            "reservoir_size": self.reservoir.size,
            "groups": {group: list(features) for group, features in self.groups.items()},
        }

    def snapshot(self) -> Snapshot:
        """Everything but the model, as plain data with a format version.

        Restoring it and continuing gives what never stopping gives, bit for bit.
        """
        return {
            "format": SNAPSHOT_FORMAT,
            "explainer": self.name,
            "parameters": self.parameters,
            "smoothed": self._smoothed.snapshot(),
            "reservoir": self.reservoir.snapshot(),
            "generator": self._rng.bit_generator.state,
            "n_skipped": self.n_skipped,
            **self._extra_snapshot(),
        }

    @classmethod
    def from_snapshot(
        cls, snapshot: Snapshot, model: Any, *, loss: Loss | Callable[[Any, Any], float] | None = None
    ) -> Self:
        """The explainer that the snapshot was taken of.

        Parameters
        ----------
        snapshot
            From `snapshot()` of the same class.
        model
            The model as it was when the snapshot was taken.
        loss
            The loss where it was a callable or a `Loss` of the user's own; named losses are found again.

        Raises
        ------
        SnapshotError
            The snapshot is of another class, format version or loss.
        """
        check_snapshot(snapshot, cls.name)
        parameters = snapshot["parameters"]
        explainer = cls(
            model,
            loss=snapshot_loss(parameters["loss"], loss),
            n_samples=parameters["n_samples"],
            alpha=parameters["alpha"],
            reservoir=Reservoir.from_snapshot(snapshot["reservoir"]),
            groups=parameters["groups"],
        )
        explainer._smoothed = SmoothedImportance.from_snapshot(snapshot["smoothed"])
        explainer._rng.bit_generator.state = snapshot["generator"]
        explainer.n_skipped = snapshot["n_skipped"]
        explainer._restore_extra(snapshot)
        return explainer

    def _extra_snapshot(self) -> Snapshot:
        return {}

    def _restore_extra(self, snapshot: Snapshot) -> None:  # noqa: B027 - most explainers have nothing extra
        """Take back what `_extra_snapshot` gave."""


def check_snapshot(snapshot: Snapshot, name: str) -> None:
    """Refuse a snapshot of another explainer or format version.

    Raises
    ------
    SnapshotError
        Says what was expected and what to do.
    """
    found = snapshot.get("format"), snapshot.get("explainer")
    if found != (SNAPSHOT_FORMAT, name):
        raise SnapshotError(
            f"expected a snapshot of {name!r} in format {SNAPSHOT_FORMAT}, got {found[1]!r} in format "
            f"{found[0]!r}: restore it with the release that wrote it, or start a new explainer"
        )


def snapshot_loss(
    name: str, loss: Loss | Callable[[Any, Any], float] | None
) -> str | Loss | Callable[[Any, Any], float]:
    """The loss to restore a snapshot with: the named one, or the caller's own of the same name.

    Raises
    ------
    SnapshotError
        The snapshot's loss was the caller's own and has not been passed, or another one has.
    """
    given = name if loss is None else as_loss(loss).name
    if given != name or (loss is None and name not in LOSS_NAMES):
        found = "none was passed" if loss is None else f"not {given!r}"
        raise SnapshotError(
            f"the snapshot was taken with the loss {name!r}, {found}: pass that loss, or start a new explainer"
        )
    return name if loss is None else loss
