"""Holds where a change explainer is: its reference, the open alarm, and what waits for fresh observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .holdout.frozen import Frozen, dump
from .judging.onset import Onset
from .judging.verdict import Estimate, Losses


@dataclass
class Reference:
    """Holds the frozen model that the present one is compared with.

    Attributes
    ----------
    n
        Observation after which it was taken.
    at
        The same on the clock of `HeldOut`.
    """

    model: Frozen
    n: int
    at: int
    version: str | None


@dataclass
class Examined:
    """Holds an open alarm.

    Attributes
    ----------
    n, at
        Observation at which it was raised, and that on the clock.
    due
        When the verdict is due, on the clock.
    is_muted
        Whether the alarm itself was not told, because it may be part of a pattern that was.
    is_doubt
        Whether this is the second look at a model that looked worse.
    path
        Losses of the reference before the alarm, with the numbers of their observations; in them the onset is looked
        for.
    copy, copy_n
        The model in the middle of the first window, which has not learnt what follows, and its observation.
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
class Matured:
    """Holds a model that has matured, until there are fresh observations to take importances on."""

    old: Frozen
    n: int
    due: int
    reference_n: int
    version_before: str | None
    losses: Losses
    discrepancy: tuple[float, int]


@dataclass
class Deployed:
    """Holds the old of two versions, until there are fresh observations to compare them on; the new is the reference.

    The number is that of the last observation before the new version.
    """

    old: Frozen
    n: int
    due: int
    version_before: str | None


def plain_losses(losses: Losses) -> list[Any]:
    """Return plain data of losses."""
    of = (losses.reference_then, losses.reference_now, losses.model_now, losses.gain)
    estimates = [None if e is None else [e.mean, e.std_error, e.n] for e in of]
    return [losses.loss, losses.loss_unit, losses.loss_largest, *estimates]


def losses_from(plain: list[Any]) -> Losses:
    """Return the losses that `plain_losses` gave."""
    then, now, model, gain = (None if e is None else Estimate(*e) for e in plain[3:])
    assert now is not None
    assert model is not None
    assert gain is not None
    return Losses(plain[0], plain[1], plain[2], then, now, model, gain)


def plain(state: Reference | Examined | Matured | Deployed | None) -> dict[str, Any] | None:
    """Return plain data of a state, models as bytes; None for None."""
    if state is None:
        return None
    found: dict[str, Any] = {}
    for name, value in vars(state).items():
        if isinstance(value, Frozen) or (name == "copy" and value is None):
            value = dump(value)
        elif isinstance(value, Losses):
            value = plain_losses(value)
        elif isinstance(value, Onset):
            value = [value.observation, value.low, value.high]
        elif isinstance(value, tuple):
            value = list(value)
        elif name == "path":
            value = [list(pair) for pair in value]
        found[name] = value
    return found


def restored(kind: type[Any], stored: Mapping[str, Any] | None) -> Any:
    """Return the state of a kind that `plain` gave the data of."""
    if stored is None:
        return None
    fields = dict(stored)
    for name in ("model", "old", "copy"):
        if name in fields:
            fields[name] = Frozen.load(fields[name])
    if fields.get("losses") is not None:
        fields["losses"] = losses_from(fields["losses"])
    if fields.get("onset") is not None:
        fields["onset"] = Onset(*fields["onset"])
    if "path" in fields:
        fields["path"] = [(n, loss) for n, loss in fields["path"]]
    if "discrepancy" in fields:
        fields["discrepancy"] = tuple(fields["discrepancy"])
    return kind(**fields)
