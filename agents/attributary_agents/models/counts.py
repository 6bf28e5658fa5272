"""Counts what happens to a model: changes, alarms, new versions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from attributary_explainers import ChangeExplanation

ALARM_ROUTES = ("detector", "discrepancy")
"""What can raise an alarm."""

CHANGE_ROUTES = (*ALARM_ROUTES, "version")
"""What can lead to an explained change."""

VERSION_OUTCOMES = ("explained", "unexplained", "refused")
"""What can become of a new version: it takes over, explained or not, or it is refused because it cannot."""


@dataclass
class ModelCounts:
    """Counts what has happened to a model id since its first observation ever, through every change of its model.

    `changes` and `rejected` are by route; `versions` counts new versions that have taken over, by whether the
    change was explained, and those that could not take over.
    """

    changes: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(CHANGE_ROUTES, 0)))
    data_changes: int = 0
    alarms: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(ALARM_ROUTES, 0)))
    rejected: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(ALARM_ROUTES, 0)))
    rejected_discrepancy: float | None = None
    versions: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(VERSION_OUTCOMES, 0)))

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in vars(self).items()}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> ModelCounts:
        """Return the counts that the snapshot was taken of."""
        values: dict[str, Any] = {
            name: Counter(value) if isinstance(value, dict) else value for name, value in snapshot.items()
        }
        return cls(**values)

    def add_change(self, explanation: ChangeExplanation) -> None:
        """Count an explained change, of the data or of the model."""
        if explanation.kind == "data":
            self.data_changes += 1
        else:
            self.changes[explanation.route] += 1
