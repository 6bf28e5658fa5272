"""The procedure of Change Algorithm 1 written out slowly, with what `ChangeExplainer` adds to it, on the same draws.

The whole past is kept. At every observation everything is worked out from it: the smoothed discrepancy is a weighted
sum over all distances since the reference, a data set is a slice of the stream. There is no counter of collected
observations: an alarm says at which observation it is due. The explainer's generator is asked for a seed when a
detector is made, and when importances are measured.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import attributary_explainers.change.alarms as alarms_module
from attributary_explainers import BatchImportance, ChangeExplainer, InvalidParameterError, NoPredictionError, batch_pfi
from tests.explainers.oracles import smoothing_weights
from tests.explainers.stand_ins import ScriptedDetector

Row = tuple[dict[str, Any], Any]

KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a": lambda x: x["a"],
    "b": lambda x: x["b"],
    "not a": lambda x: 1 - x["a"],
    "nothing": lambda x: None,
    "b or nothing": lambda x: x["b"] if x["a"] else None,
}
"""What a model may be; the last two have no prediction for some rows."""


class Scheduled:
    """A model that is another one of `KINDS` from given numbers of learnt observations on; a copy of it stays."""

    def __init__(self, *schedule: tuple[int, str]) -> None:
        self.schedule, self.n_learnt = schedule, 0

    @property
    def kind(self) -> str:
        return [kind for start, kind in self.schedule if start <= self.n_learnt][-1]

    def __call__(self, x: dict[str, Any]) -> Any:
        return KINDS[self.kind](x)

    def learn_one(self, _x: Any, _y: Any) -> None:
        self.n_learnt += 1


def observations(n: int, seed: int = 1) -> list[Row]:
    """Binary features a and b; the label is a."""
    rng = np.random.default_rng(seed)
    return [({"a": int(a), "b": int(b)}, int(a)) for a, b in rng.integers(2, size=(n, 2))]


def scripted(monkeypatch: Any, model: Any, *scripts: Sequence[int], **parameters: Any) -> ChangeExplainer:
    """An explainer whose detectors, one after the other, alarm at these numbers of values; without a script, never.

    `change.detectors` lists those that have been made.
    """
    made: list[ScriptedDetector] = []

    def make(name: str, params: Any, *, seed: int) -> ScriptedDetector:
        made.append(ScriptedDetector(tuple(scripts[len(made)]) if len(made) < len(scripts) else ()))
        return made[-1]

    monkeypatch.setattr(alarms_module, "make_detector", make)
    change = ChangeExplainer(model, **{"window": 10, "loss": "zero_one", "distance": "label", "seed": 1, **parameters})
    change.detectors = made  # type: ignore[attr-defined]
    return change


PAPER = {"watch_discrepancy": False, "max_restarts": 0}
"""Parameters of the paper's exact procedure."""


def learn(change: Any, model: Any, stream: Sequence[Row]) -> Iterator[Any]:
    """Prediction, learning, update; what each update returns."""
    for x, y in stream:
        y_pred = model(x)
        model.learn_one(x, y)
        yield change.update(x, y, y_pred)


def found_in(change: Any, model: Any, stream: Sequence[Row]) -> dict[int, Any]:
    """The explanations, by the explainer's number of the observation."""
    return {e.n_observations: e for e in learn(change, model, stream) if e is not None}


@dataclass
class NaiveChange:
    """The 0/1 error as signal, the labels as distance, PFI with the 0/1 loss."""

    model: Any
    window: int
    threshold: float
    scripts: Sequence[Sequence[int]] = ()
    has_detector: bool = True
    watch_discrepancy: bool = True
    max_restarts: int = 1
    min_observations: int | None = None
    cooldown: int = 0
    batch_size: int = 1
    measured: bool = True
    version: str | None = None
    seed: int = 1
    past: list[Row] = field(default_factory=list)
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("detector", "discrepancy", "restarts", "explained"), 0)
    )
    rejected: list[tuple[Any, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.reference: Any = None  # (model, data, importance, observation, version)
        self.due: int | None = self.min_observations or self.window
        self.alarm: tuple[str, int, int] = ("", 0, 0)
        self.quiet_until = self.discrepancy_quiet_until = 0
        self.since: list[tuple[dict[str, Any], Any]] = []
        self.n_detectors = 0
        self._make_detector()

    def _make_detector(self) -> None:
        self.fed: list[float] = []
        if self.has_detector:
            self._draw()
            self.script = self.scripts[self.n_detectors] if self.n_detectors < len(self.scripts) else ()
            self.n_detectors += 1

    def _draw(self) -> int:
        return int(self.rng.integers(2**31))

    @property
    def distances(self) -> list[float]:
        if self.reference is None:
            return []
        asked = self.since[: len(self.since) // self.batch_size * self.batch_size]
        pairs = [(self.reference[0](x), y_pred) for x, y_pred in asked]
        return [float(a != b) for a, b in pairs if a is not None]

    @property
    def discrepancy(self) -> float | None:
        values = self.distances
        if not values:
            return None
        return float(smoothing_weights(2 / (self.window + 1), len(values)) @ np.array(values))

    def update(self, x: dict[str, Any], y: Any, y_pred: Any) -> dict[str, Any] | None:
        self.past.append((dict(x), y))
        t, raised = len(self.past), set()
        if self.reference is not None and y_pred is not None:
            self.since.append((dict(x), y_pred))
            if self.has_detector:
                self.fed.append(float(y_pred != y))
                if len(self.fed) in self.script:
                    raised.add("detector")
            heard = self.watch_discrepancy and t > self.discrepancy_quiet_until
            if heard and len(self.distances) >= self.window // 2 and self.discrepancy > self.threshold:
                raised.add("discrepancy")
        if t <= self.quiet_until:
            raised = set()
        if self.due is None and raised:
            route = "detector" if "detector" in raised else "discrepancy"
            self.counts[route] += 1
            self.alarm, self.due = (route, t, 0), t + self.window - 1
        elif "detector" in raised and self.alarm[2] < self.max_restarts and self.due - t < self.window - 1:
            # From the alarm's observation on, this one not yet; a conclusion that was put off has a whole window.
            collected = self.past[-1 - (self.window - (self.due - t + 1)) : -1]
            if self._mean_distance(self.reference[0], self.model, self.reference[1] + collected)[0] > self.threshold:
                self.alarm = (*self.alarm[:2], self.max_restarts)
            else:
                self.counts["restarts"] += 1
                self.alarm, self.due = ("detector", t, self.alarm[2] + 1), t + self.window - 1
        if t != self.due:
            return None
        try:
            return self._conclude(self.past[-self.window :])
        except (NoPredictionError, InvalidParameterError):
            self.due = t + max(1, self.window // 10)
            return None

    def _pfi(self, model: Any, data: list[Row], seed: int) -> BatchImportance | None:
        if self.measured:
            return batch_pfi(model, data, loss="zero_one", seed=seed)
        if any(model(x) is None for x, _ in data):
            raise NoPredictionError("for some row")
        return None

    def _mean_distance(self, old: Any, new: Any, data: list[Row]) -> tuple[float, int]:
        pairs = [(old(x), new(x)) for x, _ in data]
        known = [float(a != b) for a, b in pairs if a is not None and b is not None]
        return (math.fsum(known) / len(known) if known else 0.0), len(known)

    def _conclude(self, data: list[Row]) -> dict[str, Any] | None:
        t = len(self.past)
        if self.reference is None:
            phi = self._pfi(self.model, data, self._draw())
            self._refer((copy.deepcopy(self.model), data, phi, t, self.version))
            return None
        h_r, data_r, phi_r, since, version = self.reference
        value, n = self._mean_distance(h_r, self.model, data_r + data)
        route, detected, _ = self.alarm
        if value <= self.threshold:
            self.rejected.append((t, detected, route, value, self.threshold))
            self.due = None
            self.quiet_until = t + self.cooldown
            if route == "discrepancy":
                self.discrepancy_quiet_until = t + self.window
            return None
        seed = self._draw()
        # In this order: where both have no prediction, the reference is asked first.
        crossed, phi = self._pfi(h_r, data, seed), self._pfi(self.model, data, seed)
        self._refer((copy.deepcopy(self.model), data, phi, t, self.version))
        self.counts["explained"] += 1
        return self._said(route, t, detected, since, value, n, version, (phi_r, crossed, phi), len(data))

    def _said(self, route, t, detected, since, value, n, version, importances, window) -> dict[str, Any]:
        return {
            "kind": "model",
            "route": route,
            "n_observations": t,
            "n_detected": detected,
            "reference_observation": since,
            "discrepancy": value,
            "n_discrepancy": n,
            "version_before": version,
            "version": self.version,
            "window": window,
            "importances": [(i.importance, i.std_error) for i in importances if i is not None],
        }

    def _refer(self, reference: Any) -> None:
        t = len(self.past)
        self.reference, self.since = reference, []
        self.quiet_until, self.discrepancy_quiet_until = t + self.cooldown, 0
        self.due = None if reference else t + (self.min_observations or self.window)

    def new_version(self, model: Any, version: str | None, explain: bool) -> dict[str, Any] | None:
        t, data, before = len(self.past), self.past[-self.window :], self.version
        found = None
        if explain and len(data) >= 2:
            value, n = self._mean_distance(self.model, model, data)
            if n:
                generator = self.rng.bit_generator.state
                seed = self._draw()
                try:
                    found = self._pfi(self.model, data, seed), self._pfi(model, data, seed)
                except (NoPredictionError, InvalidParameterError):
                    self.rng.bit_generator.state = generator
        reference = None
        if found and len(data) == self.window:
            reference = (copy.deepcopy(model), data, found[1], t, version)
        self.model, self.version = model, version
        self._make_detector()
        self._refer(reference)
        if found is None:
            return None
        self.counts["explained"] += 1
        old, new = found
        return self._said("version", t, t, t, value, n, before, (old, old, new), len(data))

    def state(self) -> tuple[Any, ...]:
        """What can be seen of it from outside."""
        counts = self.counts
        phi = self.reference[2] if self.reference else None
        return (
            len(self.past),
            (counts["detector"], counts["discrepancy"]),
            (len(self.rejected), counts["explained"], counts["restarts"]),
            self.rejected[-16:],
            self.due is not None,
            self.reference[3] if self.reference else None,
            len(self.distances),
            (phi.importance, phi.std_error) if phi else None,
            self.version,
        )


def state_of(change: ChangeExplainer) -> tuple[Any, ...]:
    """The same of the explainer."""
    phi = (change.reference or {}).get("pfi")
    return (
        change.n_observations,
        (change.n_alarms["detector"], change.n_alarms["discrepancy"]),
        (change.n_rejected, change.n_explained, change.n_restarts),
        [(r.n_observations, r.n_detected, r.route, r.discrepancy, r.threshold) for r in change.rejected],
        change.is_collecting,
        change.reference_observation,
        change.n_discrepancy,
        (phi.importance, phi.std_error) if phi else None,
        change.version,
    )


def said_by(explanation: Any) -> dict[str, Any] | None:
    """An explanation in the form that `NaiveChange` gives it in."""
    if explanation is None:
        return None
    names = ("kind", "route", "n_observations", "n_detected", "reference_observation", "discrepancy", "n_discrepancy")
    found = {name: getattr(explanation, name) for name in (*names, "version_before", "version", "window")}
    of = explanation.importances.get("pfi")
    three = [] if of is None else ["before", "crossed", "after"]
    return {**found, "importances": [(getattr(of, name), getattr(of, f"{name}_std_error")) for name in three]}
