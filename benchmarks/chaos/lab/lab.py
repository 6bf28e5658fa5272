"""What a scenario works with: a broker, a folder, random numbers, and a book of what was done and found."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.chaos.lab.brokers import ChaosBroker, Nodes


@dataclass(frozen=True)
class Check:
    """One thing that must hold, whether it did, and what was seen."""

    name: str
    passed: bool
    detail: str


@dataclass
class Lab:
    """One scenario's workplace.

    Parameters
    ----------
    folder
        For configurations and logs.
    show
        Takes a line of progress.
    nodes
        The cluster of the scenarios that kill nodes.
    minutes
        How long a scenario lasts that lasts as long as wanted; None for its own choice.
    """

    scenario: str
    broker: ChaosBroker
    nodes: Nodes
    folder: Path
    seed: int
    short: bool
    show: Callable[[str], None]
    minutes: float | None = None
    checks: list[Check] = field(default_factory=list)
    notes: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self.random = random.Random(f"{self.seed}/{self.scenario}")

    @property
    def bootstrap(self) -> str:
        """The broker, past every proxy."""
        return self.broker.bootstrap

    @property
    def elapsed_s(self) -> float:
        """Seconds since the scenario began."""
        return time.monotonic() - self.began

    def note(self, text: str) -> None:
        """Write down what was done or seen, for the report."""
        self.notes.append((self.elapsed_s, text))
        self.show(text)

    def check(self, name: str, passed: bool, detail: str) -> None:
        """Write down what must hold."""
        self.take(Check(name, passed, detail))

    def take(self, check: Check) -> None:
        """As `check`."""
        self.checks.append(check)
        self.show(f"{'pass' if check.passed else 'FAIL'}: {check.name}: {check.detail}")

    @property
    def passed(self) -> bool:
        """Whether all held, and there was something to hold."""
        return bool(self.checks) and all(check.passed for check in self.checks)
