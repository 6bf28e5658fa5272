"""The Collector that reads the metrics off the models of a monitor at each scrape."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from ..events import OUTCOMES
from ..metrics.catalogue import OF_MODELS, OF_MONITOR
from ..metrics.families import Families, add_model, n_series
from ..metrics.late_labels import add_late_labels
from ..metrics.series_limits import Limits, ShownFeatures, ShownModels
from .model import FAILURES, MonitoredModel

CATALOGUE = {
    **OF_MODELS,
    **OF_MONITOR,
    "series_dropped_models": ("Models without series because of max_models or max_series", ()),
}
"""All that a service with a monitor exports."""

_PATIENCE_S = 1.0


class MonitorCollector(Collector):
    """Reads every metric of the models, each at one moment; of one that is busy for over a second, as it was before.

    Parameters
    ----------
    models
        Returns the models by id.
    max_waiting
        Waiting observations beyond which none is explained.
    limits
        How many series there are at most.
    """

    def __init__(self, models: Callable[[], Mapping[str, MonitoredModel]], max_waiting: int, limits: Limits) -> None:
        self._get_models, self._max_waiting, self._limits = models, max_waiting, limits
        self._features = ShownFeatures(limits.max_features)
        self._shown = ShownModels(limits.max_models, limits.max_series)
        self._last: list[Metric] = []

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering reads no model."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Return a reading; the previous one while an observation takes over a second."""
        models = self._get_models()
        self._features.keep_only(models)
        shown = self._shown.choose({name: n_series(one, self._limits.max_features) for name, one in models.items()})
        families = Families(CATALOGUE)
        for name in sorted(shown):
            if not models[name].lock.acquire(timeout=_PATIENCE_S):
                return self._last
            try:
                self._add(models[name], families)
            finally:
                models[name].lock.release()
        families.add("series_dropped_models", (), float(len(models) - len(shown)))
        self._last = list(families)
        return self._last

    def _add(self, model: MonitoredModel, families: Families) -> None:
        add, labels = families.add, (model.model_id,)
        add_model(model, self._features, add)
        with model.joining:
            add_late_labels(model, add, families.add_histogram, time.time())
        for reason in FAILURES:
            add("monitor_failures_total", (*labels, reason), float(model.failures[reason]))
        add("monitor_waiting_observations", labels, float(len(model.inbox)))
        add("monitor_waiting_limit", labels, float(self._max_waiting))
        add("monitor_not_explained_total", labels, float(model.n_not_explained))
        for outcome in OUTCOMES:
            add("monitor_events_total", (*labels, outcome), float(model.events[outcome]))
