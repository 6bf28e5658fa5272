"""The base of incremental explainers: a call per row, and snapshots."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from .. import plots
from ..errors import ExplainerError, ModelFailureWarning, SnapshotError, warn_caller
from ..losses.losses import LOSS_NAMES, AnyLoss, as_loss
from ..notebook.described import Described
from ..notebook.frames import importance_frame
from ..notebook.rows import ExplainsMany
from ..typing import Features, Prediction, Snapshot

SNAPSHOT_FORMAT = 10

SKIP_REASONS = ("nothing_stored", "no_features", "missing", "no_prediction", "not_finite", "model_error", "budget")
"""Why an observation is not explained: nothing to draw from yet; no feature; missing values, by the policy `skip`; the
model predicts nothing (yet); the loss is NaN or infinite; the model raised; the observation was passed over."""


class IncrementalExplainer(Described, ExplainsMany, abc.ABC):
    """An explanation of a model that is updated with every observation.

    Call `explain_one(x, y)` once per observation, before the model learns it: the explanation is of predictions that
    were made without having seen `y` (iSAGE Algorithm 6: predict, score, explain, learn). An explainer keeps a
    reference to the model and only ever predicts with it: it always explains the model as it is now. It changes
    neither the model nor what it is given, keeps copies, draws from a generator of its own, and its state does not
    grow with the number of observations. `attributary_explainers.checks.yield_checks` tests all that, also for an
    explainer of yours.
    """

    name: ClassVar[str]
    """Names the explainer in snapshots, events and metrics."""

    model: Any
    """The model that is explained."""

    _replaced = ("model",)

    @abc.abstractmethod
    def explain_one(self, x: Features, y: Any = None, *, y_pred: Prediction = None) -> Any:
        """Update the explanation with an observation and return it.

        Parameters
        ----------
        x
            Features of the observation; not changed.
        y
            Its label or target, where the explanation reads it.
        y_pred
            The model's prediction for `x`, in the form that the loss reads, where the caller has it already.
        """

    @property
    @abc.abstractmethod
    def n_observations(self) -> int:
        """Observations that the explanation is made of."""

    @property
    @abc.abstractmethod
    def n_skipped(self) -> int:
        """Observations that could not be explained."""

    @property
    @abc.abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters as plain data; snapshots need equal ones."""

    def to_frame(self) -> Any:
        """Return the importance as a pandas frame, the largest first.

        Columns: importance, std_error, half_width, low and high (the 95 % interval); NaN where it has no errors.

        Raises
        ------
        ExplainerError
            pandas is not installed, or the explanation is no importance per feature.
        """
        importance = getattr(self, "importance", None)
        if not isinstance(importance, Mapping):
            raise ExplainerError(f"{type(self).__name__} has no importance per feature, and so no data frame of it")
        of = (getattr(self, name, None) for name in ("std_error", "half_width", "raw_importance"))
        return importance_frame(importance, *of)

    def plot(self, top: int = 20, ax: Any = None) -> Any:
        """Draw the importance as `plots.bars` does; return the matplotlib Axes.

        Raises
        ------
        ExplainerError
            The explanation is no importance per feature.
        """
        if not isinstance(getattr(self, "importance", None), Mapping):
            raise ExplainerError(f"{type(self).__name__} has no importance per feature, and so no picture of it")
        return plots.bars(self, top, ax)  # type: ignore[arg-type]

    _has_warned: bool = False

    def _model_failed(self, error: Exception) -> None:
        """Say once that the model raised; the explainer counts it."""
        if self._has_warned:
            return
        self._has_warned = True
        said = (
            "{} raised {} while it was explained. What cannot be explained is counted in n_skipped, and the "
            "explanation is of the rest; this is said once"
        )
        kind = type(self.model).__name__
        warning = ModelFailureWarning(said.format(kind, repr(error)))
        warning.without_values = said.format(kind, type(error).__name__)
        warn_caller(warning)

    @abc.abstractmethod
    def _state(self) -> Snapshot:
        """Return the changed state as plain data, under keys not in `snapshot`."""

    @abc.abstractmethod
    def _restore(self, state: Snapshot) -> None:
        """Take the state of an explainer with equal parameters; share nothing."""

    @classmethod
    @abc.abstractmethod
    def _from_parameters(cls, parameters: dict[str, Any], model: Any, loss: Any) -> Self:
        """Return a new explainer; `loss` is the caller's own, or None."""

    def snapshot(self) -> Snapshot:
        """Return everything but the model, as plain data with a format version.

        Restoring it and continuing gives what never stopping gives, bit for bit.
        """
        return {
            "format": SNAPSHOT_FORMAT,
            "explainer": self.name,
            "parameters": self.parameters,
            "has_warned": self._has_warned,
            **self._state(),
        }

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, model: Any, *, loss: AnyLoss | None = None) -> Self:
        """Return the explainer that the snapshot was taken of.

        Parameters
        ----------
        snapshot
            From `snapshot()` of the same class.
        model
            The model as it was when the snapshot was taken.
        loss
            The loss where it was a callable, a `Loss` of the user's own, or of costs; named losses are found again.

        Raises
        ------
        SnapshotError
            The snapshot is of another class, format version or loss.
        """
        check_snapshot(snapshot, cls.name)
        with _whole(cls.name):
            explainer = cls._from_parameters(snapshot["parameters"], model, loss)
            explainer._accept(snapshot)
        return explainer

    def restore(self, snapshot: Snapshot) -> None:
        """Take a snapshot's state into this explainer with equal parameters.

        Use it for an explainer made from configuration: `from_snapshot` would bring the old parameters back.

        Raises
        ------
        SnapshotError
            The snapshot is of another class, format version or set of parameters; names the parameters that differ.
        """
        check_snapshot(snapshot, self.name)
        with _whole(self.name):
            check_parameters(self.name, self.parameters, snapshot["parameters"])
            self._accept(snapshot)

    def _accept(self, snapshot: Snapshot) -> None:
        self._has_warned = snapshot["has_warned"]
        self._restore(snapshot)


@contextmanager
def _whole(name: str) -> Iterator[None]:
    """Refuse a snapshot that lacks a part."""
    try:
        yield
    except KeyError as missing:
        raise SnapshotError(
            f"the snapshot of {name!r} lacks {missing}, it is not what snapshot() has returned: take another one, or "
            "start a new explainer"
        ) from missing


def check_snapshot(snapshot: Snapshot, name: str) -> None:
    """Refuse a snapshot of another explainer or format version.

    Raises
    ------
    SnapshotError
        Says what was expected and what to do.
    """
    if not isinstance(snapshot, Mapping):
        raise SnapshotError(
            f"expected what snapshot() has returned, got {type(snapshot).__name__}; of bytes, give pickle.loads(…)"
        )
    found = snapshot.get("format"), snapshot.get("explainer")
    if found != (SNAPSHOT_FORMAT, name):
        raise SnapshotError(
            f"expected a snapshot of {name!r} in format {SNAPSHOT_FORMAT}, got {found[1]!r} in format "
            f"{found[0]!r}: restore it with the release that wrote it, or start a new explainer"
        )


def check_parameters(name: str, mine: dict[str, Any], its: dict[str, Any]) -> None:
    """Refuse a snapshot taken with other parameters.

    Raises
    ------
    SnapshotError
        Names the parameters that differ.
    """
    said = differing(mine, its)
    if said:
        raise SnapshotError(
            f"the snapshot is of {name!r} with other parameters ({said}): restore it with from_snapshot, "
            "which keeps its parameters, or start anew with these"
        )


def differing(mine: Mapping[str, Any], its: Mapping[str, Any]) -> str:
    """Return the parameters that differ, with both values; empty if none."""
    if mine == its:
        return ""
    keys = [key for key in dict.fromkeys((*mine, *its)) if mine.get(key) != its.get(key)]
    return ", ".join(f"{key} {its.get(key)!r} there, {mine.get(key)!r} here" for key in keys)


def snapshot_loss(name: str, loss: AnyLoss | None) -> AnyLoss:
    """Return the loss of a snapshot, named or given by the caller.

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
