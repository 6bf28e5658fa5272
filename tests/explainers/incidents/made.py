"""Events of watches, made by hand."""

from __future__ import annotations

from typing import Any

from attributary_explainers import (
    Alarm,
    ChangeExplanation,
    InputBreak,
    InputBreakEnd,
    Level,
    LevelMoved,
    LossShift,
    LossShiftEnd,
    LossShiftExplained,
    Moved,
    NotConfirmed,
    Onset,
    Shift,
    Suspect,
    ValueSummary,
)

CHANGE: dict[str, Any] = {
    "reference_observation": 0, "detector": "adwin", "detector_params": {}, "signal": "zero_one", "window": 1000,
    "discrepancy": 0.3, "threshold": 0.2, "n_discrepancy": 1000, "distance": "label", "scale": "relative",
}  # fmt: skip
MOVED = Moved(0.2, 0.4, 0.1, 0.3, 9.0)
NUMBERS = ValueSummary(1000, 0.0, (17.0, 18.0, 25.0, 35.0, 53.0, 70.0, 82.0, 88.0, 90.0))


def alarm(at: int, route: str = "detector") -> Alarm:
    return Alarm(route=route, n_observations=at, n_detected=at, due=at + 1000, **CHANGE)


def nothing(at: int, closes: int) -> NotConfirmed:
    return NotConfirmed(route="detector", n_observations=at, n_detected=closes, closes=closes, found="equal", **CHANGE)


def explanation(at: int, verdict: str, closes: int | None, onset: Onset | None, **of: Any) -> ChangeExplanation:
    return ChangeExplanation(
        route="detector", n_observations=at, n_detected=at - 1000, verdict=verdict, closes=closes, onset=onset,
        **{**CHANGE, **of},
    )  # fmt: skip


def loss_shift(at: int, kind: Any, onset: int, *, half: int = 40) -> LossShift:
    level = (LevelMoved(True, 0.1, 0.3, 1.2),) if kind == "level" else ()
    return LossShift(
        kind, "slope", at, Onset(onset, onset - half, onset + half), MOVED, MOVED, None, level, 6000, 256, "log_loss",
        "nats", None, at + 1000,
    )  # fmt: skip


def explained(shift: LossShift, at: int, *names: str) -> LossShiftExplained:
    features = tuple(Suspect(name, 0.1, 0.3, 0.1, -0.2, 0.02, 0.001, 0.0, name in names) for name in "abcd")
    return LossShiftExplained(shift, at, features, 1000, 1000)


def ended(shift: LossShift, at: int, reason: Any = "returned") -> LossShiftEnd:
    return LossShiftEnd(shift, reason, at, MOVED)


def broken(at: int, since: int, feature: str = "age") -> InputBreak:
    return InputBreak(feature, "missing", at, since, NUMBERS, ValueSummary(at - since + 1, 1.0))


def mended(of: InputBreak, at: int, reason: Any = "returned") -> InputBreakEnd:
    return InputBreakEnd(of, reason, at)


def relies(at: int, onset: int) -> Shift:
    before, after = Level(0.1, 0.08, 0.12), Level(0.3, 0.27, 0.33)
    return Shift("age", (), "up", before, after, 0.2, 9.0, 1e7, onset, at, at - onset, 5000)
