"""Tells changes that follow one another from single ones, so that a trend or a season is told once."""

from __future__ import annotations

from dataclasses import dataclass

_MEMORY = 10
"""Windows after the last change at which a course is over."""

_LARGER = 2.0
"""How many times as large as all before a change has to be, to be told in spite of the pattern."""


@dataclass
class Course:
    """Remembers the changes of late, and what was told of them.

    A change that comes at most ten windows after the last one continues its course. The second one of a course is told
    with the pattern; the others are not told, unless they are twice as large as all before.
    """

    window: int
    last: int | None = None
    n_changes: int = 0
    discrepancy: float = 0.0
    worsened: float = 0.0
    pattern: str | None = None

    def is_alive(self, now: int) -> bool:
        """Whether a change now continues the course."""
        return self.last is not None and now - self.last <= _MEMORY * self.window

    def is_told(self, now: int) -> bool:
        """Whether a change now is part of a pattern that was told."""
        return self.pattern is not None and self.is_alive(now)

    def add(self, now: int, discrepancy: float, worsened: float, pattern: str) -> tuple[bool, str | None]:
        """Add a change; return whether to tell it, and with which pattern.

        `pattern` is what the change would be, were it part of one.
        """
        if not self.is_alive(now):
            self.n_changes, self.discrepancy, self.worsened, self.pattern = 0, 0.0, 0.0, None
        larger = discrepancy > _LARGER * self.discrepancy or worsened > _LARGER * self.worsened
        told, found = self.pattern is None or larger, None
        if self.n_changes and told:
            found = self.pattern = pattern
        self.last, self.n_changes = now, self.n_changes + 1
        self.discrepancy, self.worsened = max(self.discrepancy, discrepancy), max(self.worsened, worsened)
        return told, found
