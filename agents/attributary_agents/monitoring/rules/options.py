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

    min_observations: float = _setting(1000, "Observations before predictions are compared")
    labels_lost_ratio: float = _setting(0.5, "Part of the observations, or of the labels, that have no partner in time")
    labels_ended: float = _setting(100, "How many of them must have ended within labels_window, before it is told")
    labels_window: str = _setting("1h", "Window in which they are counted")
    mismatch_ratio: float = _setting(0.1, "Part of the logged predictions that are not the model's own")
    dead_letters_ratio: float = _setting(0.01, "Part of the records that are dead letters, for any one reason")
    dead_letters_window: str = _setting("10m", "Window in which dead letters are counted")
    stopped_after: str = _setting("15m", "How long a model may be without observations")
    refused_within: str = _setting("10m", "How long the alert fires that a version was refused")
    gone_within: str = _setting("1h", "How long the alert fires that a model is on no worker")
    lag_records: float = _setting(1000, "Records of a partition that wait, while their number grows")
    lag_window: str = _setting("15m", "Window over which their number grows")
    transaction_seconds: float = _setting(120, "Seconds for which an open transaction holds up a partition")
    checkpoint_seconds: float = _setting(600, "Seconds since the oldest record that is handled and not stored")

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
    runbook_base, dashboard_base, page_base
        What links to runbooks, dashboards and the page begin with; without the latter two there are none to these.
    """

    thresholds: Thresholds = Thresholds()
    job: str = "attributary.*"
    runbook_base: str = "docs/runbooks"
    dashboard_base: str = "http://localhost:3000"
    page_base: str = "http://localhost:6080"
    worker_labels: tuple[str, ...] = WORKER_LABELS

    def __post_init__(self) -> None:
        wrong = [label for label in self.worker_labels if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", label)]
        if wrong or "instance" not in self.worker_labels:
            raise AttributaryError(
                f"--worker-label: expected names of labels, instance among them, got {', '.join(self.worker_labels)}"
            )
