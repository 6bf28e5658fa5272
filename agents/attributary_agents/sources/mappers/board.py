"""Metrics of the sources that this process maps.

The mapper writes them, and the web thread reads them for a scrape.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

OUTCOMES = ("mapped", "filtered", "dead")
"""What becomes of a record of a source: records of ours are made of it, it is passed over, or it is a dead letter."""


@dataclass
class SectionBoard:
    """Metrics of a single source, or of a single section of labels."""

    counts: Counter[str] = field(default_factory=Counter)
    lags: dict[tuple[str, int], int] = field(default_factory=dict)
    """Topic and partition to records that are not mapped yet."""
    last_time_ms: int | None = None
    """Event time of the record mapped last."""
    is_waiting: Callable[[], bool] = lambda: False
    """Tells whether a schema cannot be fetched now."""

    @property
    def time_lag_s(self) -> float | None:
        """Age of the record mapped last, in seconds by its event time.

        0 where all is mapped; None before the first.
        """
        if self.lags and not any(self.lags.values()):
            return 0.0
        return None if self.last_time_ms is None else max(time.time() - self.last_time_ms / 1000, 0.0)


class SourcesBoard:
    """The sections that this process maps now, by name."""

    def __init__(self) -> None:
        self.sections: dict[str, SectionBoard] = {}
        self._closed: Counter[str] = Counter()

    def open(self, name: str) -> SectionBoard:
        """Return the board of a section that is mapped here from now on."""
        return self.sections.setdefault(name, SectionBoard())

    def close(self, name: str) -> None:
        """Note that another process maps a section: its series end here."""
        if (section := self.sections.pop(name, None)) is not None:
            self._closed += section.counts

    @property
    def total(self) -> Counter[str]:
        """Counts of mapped, passed over and dead records in this process."""
        return sum((section.counts for section in self.sections.values()), self._closed)
