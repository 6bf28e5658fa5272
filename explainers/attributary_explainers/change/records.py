"""State of a change explainer: reference, open alarm, waiting models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .holdout.frozen import Frozen
from .verdicts import Estimate, Losses, Onset


@dataclass
class Reference:
    """Frozen model with which the present model is compared.

    It was taken after observation `n`, which is `at` on the clock of `HeldOut`.
    """

    model: Frozen
    n: int
    at: int
    version: str | None


@dataclass
class Examined:
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
class Matured:
    """A matured model that waits for fresh observations to be measured on."""

    old: Frozen
    n: int
    due: int
    reference_n: int
    version_before: str | None
    losses: Losses
    discrepancy: tuple[float, int]


@dataclass
class Deployed:
    """The old of two versions, until fresh observations compare them.

    The new one is the reference. `n` is the last observation before the new version.
    """

    old: Frozen
    n: int
    due: int
    version_before: str | None


@dataclass
class Told:
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


def plain(state: Reference | Examined | Matured | Deployed | Told | None) -> dict[str, Any] | None:
    """Return plain data of a state, models as bytes; None for None."""
    return None if state is None else {name: _plain(value) for name, value in vars(state).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Frozen):
        return value.dump()
    if isinstance(value, (Losses, Estimate, Onset)):
        value = vars(value).values()
    elif not isinstance(value, (tuple, list)):
        return value
    return [_plain(one) for one in value]


def restored(kind: type[Any], stored: Mapping[str, Any] | None) -> Any:
    """Return the state of a kind that `plain` gave the data of."""
    if stored is None:
        return None
    known = {name: value for name, value in stored.items() if value is not None and name in _READ}
    return kind(**{**stored, **{name: _READ[name](value) for name, value in known.items()}})


def _losses(plain: list[Any]) -> Losses:
    estimates: list[Any] = [None if e is None else Estimate(*e) for e in plain[3:]]
    return Losses(*plain[:3], *estimates)


_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("model", "old", "copy"), Frozen.load),
    "losses": _losses,
    "onset": lambda onset: Onset(*onset),
    "path": lambda path: [(n, loss) for n, loss in path],
    "discrepancy": tuple,
}
"""How the fields are read that are no plain data."""
