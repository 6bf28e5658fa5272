"""Findings: reports of all watches in a common form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..change.events import Alarm, ChangeExplanation, NotConfirmed
from ..change.verdicts import Onset
from ..inputs.events import MOSTLY, InputBreak, InputBreakEnd
from ..loss_shift.events import LossShift, LossShiftEnd, LossShiftExplained
from ..ranking import BAND, largest_first
from ..shifts.events import Shift, ShiftEnd
from ..snapshots import Stored
from .incident import Effect, Involved, Mean, Since

_MOST = 10
"""Features of a finding that are kept."""


@dataclass(frozen=True, slots=True)
class Finding(Stored):
    """Report of a watch.

    Attributes
    ----------
    watch
        `change`, `loss`, `importance`, `inputs`, `constant`, `version` or `model`.
    says
        What it found: `suspects`, `followed`, `harder`, `degraded`, `worse`, `level`, `rose`, `moved`, `broke`,
        `took over`, `went back`, `useless`; or how it ended: `nothing`, `returned`, `settled`, `replaced`.
    key
        What it is of this watch, by which its later words are told from those about another one.
    opens, closes
        Whether it begins what is not over yet, and whether it ends it. A verdict does neither.
    is_verdict
        Whether it rests on a window of observations.
    level
        What came before and comes now, where the level moved.
    """

    watch: str
    says: str
    key: str
    opens: bool = False
    closes: bool = False
    is_verdict: bool = False
    since: Since | None = None
    features: tuple[Involved, ...] = ()
    intercept: float | None = None
    level: Effect | None = None


Ago = Callable[[int], int]
"""Returns the observation of the model that came so many observations of a watch ago."""


def finding_of(event: Any, number: int, ago: Ago) -> Finding | None:
    """Return the finding of a watch's event; None if no incident follows.

    A finding is returned unchanged.

    `number` is that of the model's observation, at which the event came. Watches of the loss count those with a label.
    """
    if isinstance(event, Finding):
        return event
    if isinstance(event, Alarm):
        return _alarm(event, number)
    if isinstance(event, NotConfirmed) and event.route == "version":
        return Finding("version", "took over", "version", closes=True, is_verdict=True)
    if isinstance(event, NotConfirmed):
        return Finding("change", "nothing", str(event.closes), closes=True)
    if isinstance(event, ChangeExplanation):
        return _explanation(event, ago)
    if isinstance(event, LossShift):
        says, since = event.kind, _since(event.onset, event.observation, ago)
        return Finding("loss", says, "loss", opens=True, since=since, **_level(event))
    if isinstance(event, LossShiftExplained):
        return Finding(
            "loss", event.shift.kind, "loss", is_verdict=True,
            since=_since(event.shift.onset, event.observation, ago),
            features=_suspects(event), **_level(event.shift),
        )  # fmt: skip
    if isinstance(event, LossShiftEnd):
        return Finding("loss", event.reason, "loss", closes=True)
    if isinstance(event, Shift):
        first = ago(event.n_observations - event.onset)
        since = Since(first, first, number)
        moved = Involved(
            event.feature, event.before.value, event.after.value, event.after.value - event.before.value,
            (event.after.high - event.after.low) / 2.0, significant=True,
        )  # fmt: skip
        key = f"importance {event.feature}"
        return Finding("importance", "moved", key, opens=True, is_verdict=True, since=since, features=(moved,))
    if isinstance(event, ShiftEnd):
        return Finding("importance", event.kind, f"importance {event.shift.feature}", closes=True)
    if isinstance(event, InputBreak):
        first = number - event.observation + event.since
        broken = Involved(event.feature, moved=True, said=event.fault_words())
        key = f"inputs {event.feature}"
        apart = 5 if event.share >= MOSTLY else 25  # the first rows may have been right by chance
        since = Since(first, max(1, first - apart), first + apart)
        return Finding("inputs", "broke", key, opens=True, is_verdict=True, since=since, features=(broken,))
    if isinstance(event, InputBreakEnd):
        return Finding("inputs", event.reason, f"inputs {event.broken.feature}", closes=True)
    return None


def _since(onset: Onset, now: int, ago: Ago) -> Since:
    low = None if onset.low is None else ago(now - onset.low)
    return Since(ago(now - onset.observation), low, ago(now - onset.high))


def _alarm(event: Alarm, number: int) -> Finding:
    if event.route == "version":
        return Finding("version", "took over", "version", opens=True, since=Since(number, number, number))
    return Finding("change", "suspects", str(event.n_observations), opens=True, since=Since(number, None, number))


def _explanation(event: ChangeExplanation, ago: Ago) -> Finding | None:
    if event.verdict == "matured":
        return None
    features: tuple[Involved, ...] = ()
    if event.importances:
        of, significant = event.first, set(event.significant())
        features = tuple(
            Involved(
                name, of.before.get(name), of.after.get(name), of.delta[name],
                BAND * of.delta_std_error.get(name, 0.0), name in significant,
            )
            for name in largest_first(of.delta, list(of.delta))[:_MOST]
        )  # fmt: skip
    since = None if event.onset is None else _since(event.onset, event.n_observations, ago)
    if event.route == "version":
        return Finding("version", "took over", "version", closes=True, is_verdict=True, features=features)
    says = event.verdict or "followed"
    return Finding("change", says, str(event.closes), closes=True, is_verdict=True, since=since, features=features)


def _suspects(event: LossShiftExplained) -> tuple[Involved, ...]:
    return tuple(
        Involved(
            one.name, one.importance_before, one.importance_after, one.delta, BAND * one.delta_std_error,
            one.significant, one.moved > 0.0,
        )
        for one in event.features[:_MOST]
    )  # fmt: skip


def _level(shift: LossShift) -> dict[str, Any]:
    """Return the intercept that mends the level, and the level's move.

    The move is that of the label that moved most: its level before and now.
    """
    if shift.kind != "level" or not shift.level:
        return {}
    one = max(shift.level, key=lambda one: abs(one.observed - one.expected))
    name = "mean target" if one.label is None else f"share of {one.label}"
    before = None if one.before is None else _mean(one.before, one.label, shift.n_reference)
    level = Effect(name, before, None, _mean(one.observed, one.label, shift.n_window))
    return {"intercept": one.intercept, "level": level}


def _mean(value: float, label: Any, n: int) -> Mean:
    """Return the mean of `n` labels: a share has its binomial interval."""
    share = min(max(value, 0.0), 1.0)
    return Mean(value, 0.0) if label is None else Mean(share, BAND * math.sqrt(share * (1.0 - share) / max(n, 1)))
