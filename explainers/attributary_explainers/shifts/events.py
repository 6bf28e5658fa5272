"""Events: a shift of importance, and its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..notebook.cards import ShownEvent
from ..snapshots import Stored


@dataclass(frozen=True, slots=True)
class Level(Stored):
    """An importance with its 95 % interval, in the unit of the increments."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Shift(ShownEvent, Stored):
    """The importance of a feature has shifted, and has stayed where it went."""

    feature: Any
    """The feature or group that most of the evidence is about."""
    also: tuple[Any, ...]
    """Others that more than a twentieth of the evidence is about."""
    direction: Literal["up", "down"]
    before: Level
    """The reference."""
    after: Level
    """Since the onset. Somewhat too far from `before` for a small shift, as what was told is what stood out."""
    share: float
    """The change of the value, as a share of the sum of all absolute importances of the reference."""
    z: float
    """The change of the value over its standard error."""
    level: float
    """Observations in which evidence like this comes up once at most where nothing shifts; at least the promise."""
    onset: int
    """Number of the first observation after the shift began, as well as the evidence tells: within some blocks."""
    n_observations: int
    """Number of the observation at which the shift was told."""
    n_since_onset: int
    """Observations that `after` is the mean of."""
    n_reference: int
    """Observations that `before` is the mean of."""


@dataclass(frozen=True, slots=True)
class ShiftEnd(ShownEvent):
    """A shift is over: importance is back or settled, or the model changed."""

    shift: Shift
    kind: Literal["released", "referenced", "replaced"]
    """`released`: the feature's importance is within the slacks of both references from where it was before;
    `referenced`: it is elsewhere; `replaced`: `ImportanceShift.restart` was called before there was a new reference."""
    now: Level
    """The new reference's importance of the feature; where there is none, that since the onset of the shift."""
    share: float
    """What is left of the change, as a share of the sum of all absolute importances of the old reference."""
    n_observations: int
    """Number of the observation at which the end was told."""
    n_reference: int
    """Observations in the new reference; 0 where there is none."""
