"""Sentences about breaks in the values of a feature."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..wording import show_count, show_number

Event: TypeAlias = Any
"""An event of the module `events`, which knows this one."""

_ENDS = {
    "returned": "are as before again",
    "settled": "stay as they are, which is the reference from now on",
    "replaced": "are watched anew",
}


def of_break(event: Event, model_id: str, of: str) -> str:
    """Return a break's sentence: feature, onset, values before and after.

    `of` says in how many observations, and is empty where it is in all.
    """
    said = {"missing": _missing, "stuck": _stuck, "new": _new, "range": _range, "type": _type}[event.fault](event, of)
    return f"{model_id}: {event.feature} {said}, since {show_count(event.since)}"


def of_end(event: Event, model_id: str) -> str:
    """Return the sentence of an end."""
    since = show_count(event.broken.since)
    return f"{model_id}: the values of {event.broken.feature}, broken since {since}, {_ENDS[event.reason]}"


def _missing(event: Event, of: str) -> str:
    before = "never was" if event.before.missing == 0.0 else f"was in {show_number(100.0 * event.before.missing)} %"
    return f"is {'missing' if of else 'always missing'}{of}, and {before} before"


def _stuck(event: Event, _: str) -> str:
    value = show_number(event.after.quantiles[0]) if event.after.quantiles else repr(event.after.words[0][0])
    return f"is stuck at {value}"


def _new(event: Event, _: str) -> str:
    words = ", ".join(repr(word) for word, _ in event.after.words[:3])
    return f"has values that never came before: {words}{' …' if event.after.n_words > 3 else ''}"


def _range(event: Event, of: str) -> str:
    before, after = (_span(of) for of in (event.before, event.after))
    said = f"is {after}{of}, and was {before} before"
    if event.swapped_with is not None:
        return f"{said} (it has changed places with {event.swapped_with})"
    return said if event.unit is None else f"{said} ({event.unit.words})"


def _type(event: Event, of: str) -> str:
    if event.after.quantiles:
        return f"is a number{of} ({_span(event.after)}), and was text before"
    return f"is text{of} ({event.after.words[0][0]!r}), and was a number ({_span(event.before)}) before"


def _span(summary: Any) -> str:
    low, high = summary.quantiles[1], summary.quantiles[-2]
    return show_number(low) if low == high else f"{show_number(low)} to {show_number(high)}"
