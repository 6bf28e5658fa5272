"""Reads what the report shows from the files of a replay; long series are thinned.

Memory does not grow with the replay's length, and with the number of features only by a sum each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson

from .history import loss_text, quality_texts
from .report_axes import N_COLOURS

MAX_POINTS = 600
"""Points of a line at most, more than a screen shows."""

T = TypeVar("T")


class ThinnedSeries(Generic[T]):
    """Keeps at most `MAX_POINTS` of a series: when it is full, every second point goes, and so do later ones.

    The first and the last point are always kept.
    """

    def __init__(self) -> None:
        self._kept: list[T] = []
        self._last: list[T] = []
        self._stride = 1
        self._n = 0

    def add(self, point: T) -> None:
        """Take the next point."""
        self._last = []
        if self._n % self._stride:
            self._last = [point]
        else:
            self._kept.append(point)
            if len(self._kept) == MAX_POINTS:
                self._kept, self._stride, self._last = self._kept[::2], 2 * self._stride, [point]
        self._n += 1

    @property
    def points(self) -> list[T]:
        """The points that are kept."""
        return [*self._kept, *self._last]


@dataclass
class Explainer:
    """Holds what one explainer says about a model."""

    loss: str = ""
    """The loss in words."""
    total: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Feature to the sum of its importances' sizes over the stream."""
    latest: dict[str, float] = field(default_factory=dict)
    """Feature to its importance at the end."""
    shown: dict[str, int] = field(default_factory=dict)
    """The shown features, largest first, to their colours."""
    series: ThinnedSeries[tuple[int, list[tuple[float | None, float | None]]]] = field(default_factory=ThinnedSeries)


@dataclass
class Model:
    """Holds what the report shows about one model."""

    version: str = ""
    last: int = 0
    explainers: dict[str, Explainer] = field(default_factory=dict)
    losses: ThinnedSeries[tuple[int, float | None, float | None, float | None]] = field(default_factory=ThinnedSeries)
    quality: ThinnedSeries[tuple[int, dict[str, dict[str, float | None]]]] = field(default_factory=ThinnedSeries)
    """Observation and metrics by name, each with its value and its reference."""
    quality_texts: list[str] = field(default_factory=list)
    """What each metric was last, in words."""
    changes: list[dict[str, Any]] = field(default_factory=list)
    """Explanations."""
    shifts: list[dict[str, Any]] = field(default_factory=list)
    """Shifts of importance and their releases."""
    loss_shifts: list[list[dict[str, Any]]] = field(default_factory=list)
    """Shifts of the loss: of each what was told first, which features have to do with it, and its release."""
    recoveries: list[str] = field(default_factory=list)
    """What is said of each time that the model went back to an earlier state."""
    threshold: float | None = None
    """Discrepancy above which the model counts as another one."""
    n_alarms: int = 0
    n_not_confirmed: int = 0


def _events(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for line in lines:
            if line.strip():
                yield orjson.loads(line)


def read_events(importances: Path, changes: Path) -> dict[str, Model]:
    """Return what is shown about each model, by its id, in the order of the files."""
    models: dict[str, Model] = {}
    # Twice through the file: which features are shown is known at its end, and keeping all could be too many.
    for event in _events(importances):
        model = models.setdefault(event["model_id"], Model())
        explainer = model.explainers.setdefault(event["explainer"], Explainer())
        model.version, explainer.loss = event["model_version"], loss_text(event)
        explainer.latest = {name: feature["importance"] for name, feature in event["features"].items()}
        for feature, latest in explainer.latest.items():
            explainer.total[feature] += abs(latest)
        if event["observation"] > model.last:  # the explainers' events of one observation say the same here
            model.last = event["observation"]
            losses = event["model_loss"], event["baseline_loss"], event["discrepancy"]
            model.losses.add((event["observation"], *losses))
            model.quality.add((event["observation"], event["quality"]))
            model.quality_texts = quality_texts(event)
    for model in models.values():
        _choose(model)
    for event in _events(importances):
        explainer, features = models[event["model_id"]].explainers[event["explainer"]], event["features"]
        found = [features.get(name, {}) for name in explainer.shown]
        values = [(feature.get("importance"), feature.get("half_width")) for feature in found]
        explainer.series.add((event["observation"], values))
    for event in _events(changes):
        model = models.setdefault(event["model_id"], Model(version=event["model_version"]))
        match event["event"]:
            case "explanation":
                model.changes.append(event)
                model.threshold = event["threshold"]
            case "alarm":
                model.n_alarms += 1
            case "not_confirmed":
                model.n_not_confirmed += 1
            case "importance_shift" | "importance_shift_released":
                model.shifts.append(event)
            case "recovered":
                model.recoveries.append(event["sentence"])
            case "loss_shift":
                model.loss_shifts.append([event])
            case _:  # of the loss one shift is open at a time
                model.loss_shifts[-1].append(event)
        model.last = max(model.last, event["observation"])
    return models


def _choose(model: Model) -> None:
    colours: dict[str, int] = {}
    for explainer in model.explainers.values():
        names = _largest(explainer)
        # A feature keeps its colour from chart to chart; two of one chart never share one.
        explainer.shown = dict.fromkeys(names, -1)
        known = {colours[name]: name for name in reversed(names) if name in colours}
        free = iter([colour for colour in range(N_COLOURS) if colour not in known])
        for name in names:
            explainer.shown[name] = colours[name] if known.get(colours.get(name, -1)) == name else next(free)
            colours.setdefault(name, explainer.shown[name])


def _largest(explainer: Explainer) -> list[str]:
    """Return the features to show, the largest over the stream first: as many as are large then or at the end."""
    over_all, now = sum(explainer.total.values()) or 1.0, sum(map(abs, explainer.latest.values())) or 1.0
    share = {name: max(n / over_all, abs(explainer.latest.get(name, 0.0)) / now) for name, n in explainer.total.items()}
    chosen = sorted(share, key=lambda name: -share[name])[:N_COLOURS]
    return sorted(chosen, key=lambda name: -explainer.total[name])
