"""State of a change explainer: reference, open alarm, waiting models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from ..pickling import dump_model, freeze, load_model
from ..snapshots import Stored, register
from .verdicts import Losses, Onset


@register
class Frozen:
    """Holds an unchanging copy of a model, and turns it into bytes once."""

    def __init__(self, model: Any, data: bytes | None = None) -> None:
        self.model, self._bytes = model, data

    @classmethod
    def of(cls, model: Any) -> Self:
        """Copy a model."""
        return cls(freeze(model))

    def snapshot(self) -> bytes:
        """Return the model's bytes."""
        if self._bytes is None:
            self._bytes = dump_model(self.model)
        return self._bytes

    @classmethod
    def from_snapshot(cls, snapshot: bytes) -> Self:
        """Restore a frozen model from its bytes."""
        return cls(load_model(snapshot), snapshot)


@dataclass
class Reference(Stored):
    """Frozen model with which the present model is compared.

    It was taken after observation `n`, which is `at` on the clock of `HeldOut`.
    """

    model: Frozen
    n: int
    at: int
    version: str | None


@dataclass
class Examined(Stored):
    """Holds an open alarm.

    It was raised at observation `n`, which is `at` on the clock, on which the verdict is `due`. It `is_muted` where it
    was not told, because it may be part of a pattern that was; `is_doubt` is the second look at a model that looked
    worse. `path` has the losses of the reference before the alarm, with the numbers of their observations: in them the
    onset is looked for. `copy` is the model in the middle of the first window, at observation `copy_n`, which has not
    learnt what follows.
    """

    route: str
    n: int
    at: int
    due: int
    is_muted: bool
    discrepancy: tuple[float, int]
    is_doubt: bool = False
    copy: Frozen | None = None
    copy_n: int = 0
    onset: Onset | None = None
    path: list[tuple[int, float]] = field(default_factory=list)


@dataclass
class Matured(Stored):
    """A matured model that waits for fresh observations to be measured on."""

    old: Frozen
    n: int
    due: int
    reference_n: int
    version_before: str | None
    losses: Losses
    discrepancy: tuple[float, int]


@dataclass
class Deployed(Stored):
    """The old of two versions, until fresh observations compare them.

    The new one is the reference. `n` is the last observation before the new version.
    """

    old: Frozen
    n: int
    due: int
    version_before: str | None


@dataclass
class Told(Stored):
    """The part of an event that is known before its importances.

    Discrepancy and losses of two versions are found with the importances.
    """

    route: str
    n_detected: int
    reference_n: int
    version_before: str | None
    version: str | None
    discrepancy: tuple[float, int] = (0.0, 0)
    verdict: str | None = None
    closes: int | None = None
    losses: Losses | None = None
    onset: Onset | None = None
    pattern: str | None = None
