"""Counts of a model's incidents, versions and recoveries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

INCIDENTS = (
    *((what, severity) for what in ("inputs", "worse", "version") for severity in ("warning", "critical")),
    *(("changed", severity) for severity in ("info", "warning")),
    *((what, "info") for what in ("harder", "relies_differently", "version")),
    ("level", "warning"),
    ("recovered", "critical"),
)
"""What can be confirmed of a model, and how bad it is then."""

RECOVERIES = ("recovered", "forgotten")
"""How often a model went back to its last good state, and how many observations it forgot by that."""

VERSION_OUTCOMES = ("explained", "unexplained", "refused")
"""What can become of a new version: it takes over, explained or not, or it is refused because it cannot."""


@dataclass
class ModelCounts:
    """Counts of events of a model id since its first observation.

    It goes on through every change of its model. Recoveries are how often the model went back to its last good state,
    and how many observations it forgot by that. Incidents are those that were confirmed, by what they were then and how
    bad. Versions are those that have taken over, by whether the change could be explained, which is known
    `change.window` observations later, and those that could not.
    """

    recoveries: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(RECOVERIES, 0)))
    incidents: Counter[tuple[str, str]] = field(default_factory=lambda: Counter(dict.fromkeys(INCIDENTS, 0)))
    versions: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(VERSION_OUTCOMES, 0)))

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {name: dict(value) for name, value in vars(self).items()}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> ModelCounts:
        """Return the counts that the snapshot was taken of."""
        return cls(**{name: Counter(value) for name, value in snapshot.items()})
