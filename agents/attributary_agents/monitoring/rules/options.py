"""What of the rules a user chooses: thresholds, windows, and where links lead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from ...errors import AttributaryError
from .recorded import APART

_DURATION = re.compile(r"[1-9]\d*(?:s|m|h|d)")


def _of(default: float | str, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Thresholds:
    """Where alerts begin. Durations are written as Prometheus does: 90s, 10m, 1h."""

    min_observations: float = _of(1000, "Observations before an importance or a loss is trusted")
    ranking_ndcg: float = _of(0.9, "NDCG of the ranking below which it has shifted, 0 to 1")
    share_shift: float = _of(0.3, "Share of importance that has moved, 0 to 1")
    compare_with: str = _of("1h", "How long ago the share is that a feature's share is compared with")
    collapsed_from: float = _of(0.1, "Share that a feature had at least, to collapse")
    collapsed_to: float = _of(0.25, "Part of that share which is left at most")
    surged_to: float = _of(0.2, "Share that a feature has at least, to have surged")
    surged_by: float = _of(3, "Times the share that it had")
    dominant_share: float = _of(0.8, "Share with which a single feature dominates")
    change_window: str = _of("10m", "How long a change is told")
    storm_changes: float = _of(5, "Changes within storm_window that are a storm, new versions aside")
    storm_window: str = _of("1h", "Window of a storm")
    min_discrepancy_observations: float = _of(100, "Observations before a discrepancy is trusted")
    baseline_margin: float = _of(0, "Part by which the loss exceeds that of the baseline")
    labels_missing_ratio: float = _of(0.05, "Part of the records without a label")
    dead_letters_ratio: float = _of(0.01, "Part of the records that are dead letters, for any one reason")
    dead_letters_window: str = _of("10m", "Window of the two parts")
    stopped_after: str = _of("15m", "How long a model may be without observations")
    gone_within: str = _of("1h", "How long it is told that a model is on no worker")
    lag_records: float = _of(1000, "Records of a partition that wait, and become more")
    lag_window: str = _of("15m", "Over which they become more")
    checkpoint_seconds: float = _of(600, "Age of what is handled and not stored")
    state_bytes: float = _of(100_000_000, "Size of a model's stored state")
    explain_every: float = _of(64, "One in so many explained under a budget; 64 is the most there is")

    def with_values(self, texts: Iterable[str]) -> Thresholds:
        """These with others, given as NAME=VALUE.

        Raises
        ------
        AttributaryError
            There is no such name, or the value is none of its kind.
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
    """How the rules are written.

    Attributes
    ----------
    job
        Regular expression of the scrape job's name, for `up`.
    apart
        Labels that tell the workers of a group apart; `instance` must be one of them.
    runbook_base, dashboard_base
        What links to runbooks and dashboards begin with; without the latter there are none to dashboards.
    """

    thresholds: Thresholds = Thresholds()
    job: str = "attributary.*"
    runbook_base: str = "docs/runbooks"
    dashboard_base: str = "http://localhost:3000"
    apart: tuple[str, ...] = APART

    def __post_init__(self) -> None:
        wrong = [label for label in self.apart if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", label)]
        if wrong or "instance" not in self.apart:
            raise AttributaryError(
                f"--worker-label: expected names of labels, instance among them, got {', '.join(self.apart)}"
            )
