"""Plain words for names, counts, durations and times."""

from __future__ import annotations

from attributary_explainers.wording import printable, show_count

NAME_LENGTH = 48
"""Longest name within a sentence; a longer one is cut in its middle."""


def name(text: object, most: int = NAME_LENGTH) -> str:
    """Return a name for a sentence: control characters out, length limited.

    A long name is cut in the middle.
    """
    shown = printable(text)
    if len(shown) <= most:
        return shown
    head = (most - 1) // 2
    return f"{shown[: most - 1 - head]}…{shown[len(shown) - head :]}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun in the right number.

    Examples
    --------
    >>> counted(1, "dead letter"), counted(3, "dead letter"), counted(2, "waits", "wait")
    ('1 dead letter', '3 dead letters', '2 wait')
    """
    return f"{show_count(n)} {one if n == 1 else many or one + 's'}"


def duration(ms: int) -> str:
    """Return a duration in words, in the largest unit that gives two or more.

    The smallest unit is the minute.

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
    """Return how long ago something was, or its observation without a time."""
    if time_ms is None:
        return f"at observation {show_count(observation)}"
    return "just now" if now_ms - time_ms < 60_000 else f"{duration(now_ms - time_ms)} ago"
