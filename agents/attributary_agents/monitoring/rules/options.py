"""Holds what a user can set for the rules: thresholds, windows, and where links lead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from ...errors import AttributaryError
from .recorded import WORKER_LABELS

_DURATION = re.compile(r"[1-9]\d*(?:s|m|h|d)")


def _setting(default: float | str, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Thresholds:
    """Holds the values at which alerts begin. Durations are written as in Prometheus: 90s, 10m, 1h."""

    min_observations: float = _setting(1000, "Observations before an importance or a loss is trusted")
    compare_with: str = _setting("1h", "How far back the share lies that a feature's share is compared with")
    collapsed_from: float = _setting(0.1, "Share that a feature had at least, to collapse")
    collapsed_to: float = _setting(0.25, "Largest part of that share that is left")
    surged_to: float = _setting(0.2, "Share that a feature has at least, to have surged")
    surged_by: float = _setting(3, "Factor by which the share has grown")
    dominant_share: float = _setting(0.8, "Share with which a single feature dominates")
    change_window: str = _setting("10m", "How long the alert on a change fires")
    explains_observations: float = _setting(
        1000, "Observations for which a change holds back alerts of importance; use change.window"
    )
    explains_within: str = _setting("1h", "How long it does so at most, on a slow stream")
    storm_changes: float = _setting(5, "Changes within storm_window that make a storm, not counting new versions")
    storm_window: str = _setting("1h", "Window of a storm")
    baseline_margin: float = _setting(0, "Part by which the loss exceeds that of the baseline")
    labels_missing_ratio: float = _setting(0.05, "Part of the records without a label")
    waiting_ratio: float = _setting(0.9, "Part of max_waiting that is taken by observations that wait for labels")
    labels_lost_ratio: float = _setting(0.5, "Part of the observations, or of the labels, that have no partner in time")
    labels_ended: float = _setting(100, "How many of them must have ended within labels_window, before it is told")
    labels_window: str = _setting("1h", "Window in which they are counted")
    mismatch_ratio: float = _setting(0.1, "Part of the logged predictions that are not the model's own")
    dead_letters_ratio: float = _setting(0.01, "Part of the records that are dead letters, for any one reason")
    not_finite_predictions: float = _setting(1, "Predictions within dead_letters_window that were not finite")
    dead_letters_window: str = _setting("10m", "Window in which dead letters are counted")
    stopped_after: str = _setting("15m", "How long a model may be without observations")
    gone_within: str = _setting("1h", "How long the alert fires that a model is on no worker")
    lag_records: float = _setting(1000, "Records of a partition that wait, while their number grows")
    lag_window: str = _setting("15m", "Window over which their number grows")
    transaction_seconds: float = _setting(120, "Seconds for which an open transaction holds up a partition")
    checkpoint_seconds: float = _setting(600, "Seconds since the oldest record that is handled and not stored")
    state_bytes: float = _setting(100_000_000, "Size of a model's stored state")
    explain_every: float = _setting(
        64, "Only one in this many observations is explained under a budget; 64 is the largest"
    )

    def with_values(self, texts: Iterable[str]) -> Thresholds:
        """Return these thresholds with some replaced, each given as NAME=VALUE.

        Raises
        ------
        AttributaryError
            There is no such name, or the value has the wrong type.
        """
        values = {known.name: getattr(self, known.name) for known in fields(self)}
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals or name not in values:
                raise AttributaryError(
                    f"--threshold {text}: expected NAME=VALUE, with a name that `attributary rules thresholds` lists"
                )
            values[name] = _duration(name, value) if isinstance(values[name], str) else _number(name, value)
        return Thresholds(**values)


def _duration(name: str, value: str) -> str:
    if not _DURATION.fullmatch(value):
        raise AttributaryError(f"--threshold {name}: expected a duration such as 90s, 10m or 1h, got {value!r}")
    return value


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise AttributaryError(f"--threshold {name}: expected a number of 0 or more, got {value!r}")
    return number


@dataclass(frozen=True)
class RuleOptions:
    """Holds how the rules are written.

    Attributes
    ----------
    job
        Regular expression of the scrape job's name, for `up`.
    worker_labels
        Labels that tell the workers of a group apart; `instance` must be one of them.
    runbook_base, dashboard_base
        What links to runbooks and dashboards begin with; without the latter there are none to dashboards.
    """

    thresholds: Thresholds = Thresholds()
    job: str = "attributary.*"
    runbook_base: str = "docs/runbooks"
    dashboard_base: str = "http://localhost:3000"
    worker_labels: tuple[str, ...] = WORKER_LABELS

    def __post_init__(self) -> None:
        wrong = [label for label in self.worker_labels if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", label)]
        if wrong or "instance" not in self.worker_labels:
            raise AttributaryError(
                f"--worker-label: expected names of labels, instance among them, got {', '.join(self.worker_labels)}"
            )
