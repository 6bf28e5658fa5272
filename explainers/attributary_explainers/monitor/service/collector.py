"""The Collector that reads a monitor's models at each scrape."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from ..catalogue import OF_MODELS, OF_MONITOR
from ..families import Families, add_late_labels, add_model, n_series
from ..outbox import OUTCOMES
from ..series_limits import Limits, ShownFeatures, ShownModels
from .model import FAILURES, MonitoredModel

CATALOGUE = {
    **OF_MODELS,
    **OF_MONITOR,
    "series_dropped_models": ("Models without series because of max_models or max_series", ()),
}
"""All that a service with a monitor exports."""

_PATIENCE_S = 1.0


class MonitorCollector(Collector):
    """Collector of all metrics of the models, each read at a single moment.

    One that is busy for long is as it was before. A scrape waits for a second at most, in all. Scrape in a thread: the
    loop of a service would be held up by it. Beyond `max_waiting` waiting observations none is explained; observations
    wait by the clock, seconds since 1970.
    """

    def __init__(
        self,
        models: Callable[[], Mapping[str, MonitoredModel]],
        max_waiting: int,
        limits: Limits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._get_models, self._max_waiting, self._limits, self._clock = models, max_waiting, limits, clock
        self._features = ShownFeatures(limits.max_features)
        self._shown = ShownModels(limits.max_models, limits.max_series)
        self._scraping = threading.Lock()
        self._n_series: dict[str, int] = {}
        self._last: dict[str, list[Callable[[Families], None]]] = {}
        """By model, what adds to families what was read last."""

    def describe(self) -> Iterable[Metric]:
        """Return the metrics without samples: a registry checks for duplicates."""
        return list(Families(CATALOGUE))

    def collect(self) -> Iterable[Metric]:
        """Return a reading of all models; for busy models, the last reading."""
        models = self._get_models()
        families = Families(CATALOGUE)
        with self._scraping:
            until = time.monotonic() + _PATIENCE_S
            self._features.keep_only(models)
            self._last = {name: reading for name, reading in self._last.items() if name in models}
            self._n_series = {name: self._count(one, until) for name, one in models.items()}
            shown = self._shown.choose(self._n_series)
            for name in sorted(shown):
                self._read(models[name], until)
                for add in self._last.get(name, ()):
                    add(families)
        families.add("series_dropped_models", (), float(len(models) - len(shown)))
        return list(families)

    def _count(self, model: MonitoredModel, until: float) -> int:
        """Return how many series the features of a model have at most."""
        with _held(model, until) as is_held:
            return n_series(model, self._limits.max_features) if is_held else self._n_series.get(model.model_id, 0)

    def _read(self, model: MonitoredModel, until: float) -> None:
        """Read a model, unless it is busy."""
        with _held(model, until) as is_held:
            if is_held:
                self._last[model.model_id] = self._reading(model)

    def _reading(self, model: MonitoredModel) -> list[Callable[[Families], None]]:
        found: list[Callable[[Families], None]] = []
        labels = (model.model_id,)

        def add(*sample: Any) -> None:
            found.append(lambda families: families.add(*sample))

        def add_histogram(*histogram: Any) -> None:
            found.append(lambda families: families.add_histogram(*histogram))

        add_model(model, self._features, add)
        with model.joining:
            add_late_labels(model, add, add_histogram, self._clock())
        for reason in FAILURES:
            add("monitor_failures_total", (*labels, reason), float(model.failures[reason]))
        add("monitor_waiting_observations", labels, float(len(model.inbox)))
        add("monitor_waiting_limit", labels, float(self._max_waiting))
        add("monitor_not_explained_total", labels, float(model.n_not_explained))
        for outcome in OUTCOMES:
            add("monitor_events_total", (*labels, outcome), float(model.events[outcome]))
        return found


@contextmanager
def _held(model: MonitoredModel, until: float) -> Iterator[bool]:
    """Hold a model, if that can be had by then; say whether."""
    is_held = model.lock.acquire(timeout=max(until - time.monotonic(), 0.0))
    try:
        yield is_held
    finally:
        if is_held:
            model.lock.release()
