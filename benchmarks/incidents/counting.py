"""Counts what a person is told of a stream by the events of today."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.incidents.streams import Case

BAD, FINE = "bad", "fine"
_SAYS = {
    ("loss_shift", "worse"): BAD,
    ("loss_shift_explained", "worse"): BAD,
    ("explanation", "degraded"): BAD,
    ("explanation", "followed"): FINE,
    ("not_confirmed", "equal"): FINE,
    ("not_confirmed", "easier"): FINE,
    ("not_confirmed", "degraded"): FINE,
}
"""What an event says about the model, by its name and verdict. That it is over is no contradiction."""
_OPENS = ("alarm", "loss_shift", "importance_shift")
_WORDS = {
    "followed": "changed", "harder": "harder", "degraded": "worse", "worse": "worse", "level": "level", "rose": "worse",
}  # fmt: skip


@dataclass
class Story:
    """What was told of one stream.

    Attributes
    ----------
    messages
        Sentences about what happened.
    opened
        How many of them began something new, as an alarm or a shift does.
    false
        Those that began something where nothing had happened.
    contradictions
        How often one sentence said that the model is worse and the next one that it is not, or the other way round,
        within a window of 1000 observations.
    first
        Observations until the first of them.
    what, features
        What was said last of what happened, and the features named, the first one first.
    """

    messages: int = 0
    opened: int = 0
    false: int = 0
    contradictions: int = 0
    first: list[int] = field(default_factory=list)
    what: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)


def summed(case: Case, told: list[dict[str, Any]]) -> Story:
    """Return what a person has read."""
    story, said, said_at = Story(), "", 0
    ends = [*case.at[1:], case.n]
    for event in told:
        name, at = event["event"], event["observation"]
        verdict = event.get("verdict") or event.get("kind") or event.get("reason")
        if verdict == "matured":
            continue
        since = max((start for start in case.at if start < at), default=None)
        if since is None:
            story.false += name in _OPENS
            continue
        story.messages += 1
        story.opened += name in _OPENS
        if len(story.first) < sum(start < at for start in case.at):
            story.first.append(at - since)
        word = _SAYS.get((name, verdict or ""))
        if word is not None:
            story.contradictions += said not in ("", word) and at - said_at <= 1000
            said, said_at = word, at
        if verdict in _WORDS and at <= ends[case.at.index(since)]:
            story.what.append(_WORDS[verdict])
        story.features += named(event)[:1]
    return story


def named(event: dict[str, Any]) -> list[str]:
    """Return the features that an event names, the first one first."""
    if event["event"] == "importance_shift":
        return [event["feature"]]
    if event["event"] == "loss_shift_explained":
        return [name for name, one in event["features"].items() if one["significant"]]
    found = []
    for comparison in (event.get("importances") or {}).values():
        found += [name for name, change in comparison["features"].items() if change["significant"]]
    return found
