"""Defines the recording rules: each series counts once, whichever worker has it.

A partition may move between workers, and takes its counters along. So `max without (instance, pod)` is one series
through every move: while both workers show it, it counts once. Counters among them are never read by rate() or
increase(): after a crash a counter goes on from the last checkpoint, a little below what was scraped, and Prometheus
would take that for a restart from 0 and add all that ever was. See `rise`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..metrics import CATALOGUE

PREFIX = "attributary_"
WORKER_LABELS = ("instance", "pod")
"""Labels that tell workers apart, as Prometheus adds them by default and in Kubernetes."""

NAMES = (
    "incident_open",
    "incident_info",
    "incident_since_timestamp_seconds",
    "explainer_observations",
    "explainer_stale",
    "model_fidelity_ratio",
    "model_fidelity_limit_ratio",
    "model_prediction_mismatch_ratio",
    "observations_expired_total",
    "labels_total",
    "model_observations_total",
    "model_versions_total",
    "records_consumed_total",
    "dead_letters_total",
    "consumer_lag_records",
    "source_lag_records",
    "checkpoint_pending_seconds",
    "transaction_open_seconds",
    "endpoint_breaker_open",
    "endpoint_waiting_seconds",
)
"""Metrics of models and partitions that rules read: those that move between workers."""

RATES = ("model_observations_total", "records_consumed_total", "dead_letters_total")
"""Counters whose rate over 5 minutes is recorded."""

JOINED = "model:attributary_labels_joined:sum"
"""The labels of a model that have found their observation."""

ORPHANED = "model:attributary_labels_orphaned:sum"
"""Those that have found none in time."""

UNLABELLED = "model:attributary_observations_unlabelled:sum"
"""The observations of a model that have had no label in time."""

_LEVELS = (("explainer", "explainer"), ("model_id", "model"), ("partition", "partition"))


@dataclass(frozen=True)
class Recording:
    """Describes a recorded series and the expression whose value it has."""

    record: str
    expr: str

    def rule(self) -> dict[str, str]:
        """Return the recording as a rule file has it."""
        return {"record": self.record, "expr": self.expr}


def recorded(name: str) -> str:
    """Return the name of the series that is recorded for a metric of the catalogue.

    Examples
    --------
    >>> recorded("incident_open")
    'model:attributary_incident_open:max'
    """
    if name not in NAMES:
        raise KeyError(f"{name} is not recorded: add it to NAMES")
    return f"{_level(name)}:{PREFIX}{name}:max"


def rate(name: str) -> str:
    """Return the name of the series with the rate of a counter.

    Examples
    --------
    >>> rate("records_consumed_total")
    'partition:attributary_records_consumed:rate5m'
    """
    if name not in RATES:
        raise KeyError(f"the rate of {name} is not recorded: add it to RATES")
    return f"{_level(name)}:{PREFIX}{name.removesuffix('_total')}:rate5m"


def rise(series: str, window: str) -> str:
    """Return the expression for the rise of a recorded counter within the window; a fall does not count as a rise.

    Counted from the lowest value of the window: so a counter that goes back, after a crash or with `attributary models
    reset`, has not risen by that, gaps do no harm, and of what is repeated after a crash the repetition is counted.

    Examples
    --------
    >>> rise("model:x:max", "5m")
    '(model:x:max - min_over_time(model:x:max[5m]))'
    """
    return f"({series} - min_over_time({series}[{window}]))"


def recordings(worker_labels: tuple[str, ...] = WORKER_LABELS) -> list[Recording]:
    """Return all recordings, in the order of evaluation."""
    workers = ", ".join(worker_labels)
    base = [Recording(recorded(name), f"max without ({workers}) ({PREFIX}{name})") for name in NAMES]
    labels = recorded("labels_total")
    joined, orphaned = f'{labels}{{outcome=~"joined|joined_old_version"}}', f'{labels}{{outcome="orphaned"}}'
    expired = f'{recorded("observations_expired_total")}{{reason!="pair"}}'
    base.append(Recording(JOINED, f"sum without (outcome) ({joined})"))
    base.append(Recording(ORPHANED, f"sum without (outcome) ({orphaned})"))
    base.append(Recording(UNLABELLED, f"sum without (reason) ({expired})"))
    # The slope, which is right whatever the interval of evaluation; 0 for a while where a counter goes back.
    return base + [Recording(rate(name), f"clamp_min(deriv({recorded(name)}[5m]), 0)") for name in RATES]


def labels_of(name: str) -> tuple[str, ...]:
    """Return the labels of a metric of the catalogue."""
    return CATALOGUE[name][1]


def _level(name: str) -> str:
    return next(level for label, level in _LEVELS if label in labels_of(name))
