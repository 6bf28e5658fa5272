"""Doubt about observational importance whose draws miss dependence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..errors import ObservationalDoubtWarning, warn_caller
from ..removal.misfit import Misfit
from ..typing import Features, Importance, Prediction, Snapshot
from ..wording import show_number

EVERY = 20
"""The interventional importance is estimated from every so many-th observation, while draws miss something."""
LEAST_SHARE, LEAST_ERRORS, LEAST_LOOKS = 0.1, 5.0, 100
"""It is warned of doubts above this share of the importance, told by so many standard errors, after so many looks."""


class Companion(Protocol):
    """Interventional explainer beside an observational explainer."""

    @property
    def importance(self) -> Importance:
        """Importance per feature or group."""

    @property
    def std_error(self) -> Importance:
        """Its standard error."""

    def explain_one(self, x: Features, y: Any = None, *, y_pred: Prediction = None) -> Importance:
        """Update the importance with an observation."""

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""

    def restore(self, snapshot: Snapshot) -> None:
        """Take the state of a snapshot."""


class Doubt:
    """A lower bound on how far off observational importance is.

    Draws that miss all of the dependence are interventional. Where they miss the share s of it, importance lies
    between the right value and the interventional one, and is off by about s / (1 - s) of its distance from the
    latter; the doubt is s times that distance, less two standard errors of it, as the share is a lower bound too.

    Parameters
    ----------
    misfit
        Of the imputer.
    make
        Makes the companion, when it is needed first.
    """

    def __init__(self, misfit: Callable[[], Misfit], make: Callable[[], Companion]) -> None:
        self._misfit, self._make = misfit, make
        self._companion: Companion | None = None
        self._n = 0
        self._warned: list[Any] = []

    def update(self, x: Features, y: Any, y_pred: Prediction) -> bool:
        """Take in an explained observation; return whether the doubt may change."""
        self._n += 1
        if self._n % EVERY or not any(share > 0.0 for share, _ in self._misfit().shares().values()):
            return False
        if self._companion is None:
            self._companion = self._make()
        self._companion.explain_one(x, y, y_pred=y_pred)
        return True

    def values(
        self, importance: Importance, std_error: Importance, groups: Mapping[Any, Sequence[Any]]
    ) -> dict[Any, float]:
        """Return the doubt per name, in the loss's unit; NaN where unknown."""
        shares = self._misfit().shares()
        other = {} if self._companion is None else self._companion.importance
        errors = {} if self._companion is None else self._companion.std_error
        found = {}
        for name, value in importance.items():
            missed = [shares[f][0] for f in groups.get(name, (name,)) if f in shares and shares[f][0] == shares[f][0]]
            if missed and max(missed) == 0.0:
                found[name] = 0.0
                continue
            apart = abs(other.get(name, math.nan) - value)
            noise = 2.0 * math.hypot(errors.get(name, math.nan), std_error.get(name, math.nan))
            found[name] = max(missed) * max(apart - noise, 0.0) if missed and apart == apart else math.nan
        return found

    def warn(self, importance: Importance, doubts: Mapping[Any, float], groups: Mapping[Any, Sequence[Any]]) -> None:
        """Say once for each feature or group that its importance is in doubt."""
        misfit = self._misfit()
        if misfit.n < LEAST_LOOKS:
            return
        shares = misfit.shares()
        for name, doubt in doubts.items():
            told = max((shares[f][1] for f in groups.get(name, (name,)) if f in shares), default=0.0)
            if name in self._warned or told < LEAST_ERRORS or not doubt > LEAST_SHARE * abs(importance[name]):
                continue
            self._warned.append(name)
            warn_caller(
                ObservationalDoubtWarning(
                    f"the observational importance of {name!r}, {show_number(importance[name])}, is off, probably by "
                    f"{show_number(doubt)} or "
                    "more: its draws miss a part of what it has in common with other features, as where three of them "
                    "depend on each other in a way that no two do. The right value is farther from the interventional "
                    "importance. See observational_doubt; this is said once per feature"
                )
            )

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        companion = None if self._companion is None else self._companion.snapshot()
        return {"n": self._n, "warned": list(self._warned), "companion": companion}

    def restore(self, state: Snapshot) -> None:
        """Take the state of a doubt with equal parameters."""
        self._n, self._warned, self._companion = state["n"], list(state["warned"]), None
        if state["companion"] is not None:
            self._companion = self._make()
            self._companion.restore(state["companion"])
