"""Says in plain words how long ago something was, and how many there are."""

from __future__ import annotations

from attributary_explainers.wording import printable, show_count

NAME_LENGTH = 48
"""Longest name within a sentence; a longer one is cut in its middle."""


def name(text: object, most: int = NAME_LENGTH) -> str:
    """Return a name as it stands in a sentence: without control characters, and cut in the middle where it is long."""
    shown = printable(text)
    if len(shown) <= most:
        return shown
    head = (most - 1) // 2
    return f"{shown[: most - 1 - head]}…{shown[len(shown) - head :]}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a number with what it counts.

    Examples
    --------
    >>> counted(1, "dead letter"), counted(3, "dead letter"), counted(2, "waits", "wait")
    ('1 dead letter', '3 dead letters', '2 wait')
    """
    return f"{show_count(n)} {one if n == 1 else many or one + 's'}"


def duration(ms: int) -> str:
    """Return how long something takes, in the largest unit of which it is at least two, minutes at least.

    Examples
    --------
    >>> [duration(n * 60_000) for n in (0, 1, 12, 90, 180, 1440, 3000)]
    ['less than a minute', '1 minute', '12 minutes', '90 minutes', '3 hours', '24 hours', '2 days']
    """
    minutes = ms // 60_000
    if minutes < 1:
        return "less than a minute"
    if minutes < 120:
        return counted(minutes, "minute")
    if minutes < 2880:
        return counted(minutes // 60, "hour")
    return counted(minutes // 1440, "day")


def when(time_ms: int | None, observation: int, now_ms: int) -> str:
    """Return when something was: how long ago, or where there is no time the observation."""
    if time_ms is None:
        return f"at observation {show_count(observation)}"
    return "just now" if now_ms - time_ms < 60_000 else f"{duration(now_ms - time_ms)} ago"
