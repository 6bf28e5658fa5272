"""Says in plain words how long ago something was, and in half a line what has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attributary_explainers.losses.statement import is_score
from attributary_explainers.ranking import largest_first
from attributary_explainers.wording import printable, show_count

NAME_LENGTH = 48
"""Longest name within a sentence; a longer one is cut in its middle."""

NAMED = 2
"""Features that half a line names; the others are counted."""

_VERDICTS = {
    "followed": "the data changed, and it followed",
    "harder": "the data changed, and it has not gained on them",
    "matured": "it has learnt more",
    "degraded": "it became worse",
}
_VERDICTS_OF_SCORES = {
    "followed": "the data changed, and it takes them for usual",
    "harder": "the data changed, and it takes them for no more usual",
    "matured": "it has learnt more",
    "degraded": "it began to score higher",
}
_KINDS = {
    "worse": "it became wronger",
    "level": "it is off its level",
    "harder": "its observations became harder",
    "rose": "its loss rose",
}


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


def window_text(window_ms: int | None) -> str:
    """Return which time is looked back on.

    Examples
    --------
    >>> window_text(86_400_000), window_text(3_600_000), window_text(604_800_000), window_text(None)
    ('in the last 24 h', 'in the last 1 h', 'in the last 7 days', 'so far')
    """
    if window_ms is None:
        return "so far"
    hours = window_ms / 3_600_000
    if hours > 48 and hours % 24 == 0:
        return f"in the last {round(hours / 24)} days"
    return f"in the last {hours:g} h" if hours >= 1 else f"in the last {counted(round(hours * 60), 'minute')}"


def gist(event: Mapping[str, Any]) -> str:
    """Return in half a line what an event of the topic of changes tells, without the model's name."""
    match event.get("event"):
        case "explanation":
            return _of_explanation(event)
        case "importance_shift":
            word = "more" if event.get("direction") == "rose" else "less"
            return f"relies {word} on {name(event.get('feature'))}"
        case "importance_shift_released":
            return f"its shift of {name(event.get('feature'))} is over"
        case "loss_shift" | "loss_shift_explained":
            return _of_loss(event)
        case "loss_shift_released":
            return "the shift of its loss is over"
        case "recovered":
            return f"it failed, and went back to observation {show_count(int(event.get('back_to') or 0))}"
        case "alarm":
            return "it is being examined"
        case "not_confirmed":
            return "its alarm is not confirmed"
    return "it changed"


def named_features(event: Mapping[str, Any]) -> dict[str, float]:
    """Return the features that an event tells of, to their changes of importance, the largest first."""
    if event.get("event") in ("importance_shift", "importance_shift_released"):
        return {str(event.get("feature")): float((event.get("size") or {}).get("importance") or 0.0)}
    if event.get("event") == "loss_shift_explained":
        found: Mapping[str, Any] = event.get("features") or {}
        return {one: float(said.get("delta") or 0.0) for one, said in found.items() if said.get("significant")}
    features = next((one.get("features") or {} for one in (event.get("importances") or {}).values()), {})
    moved = {one: float(said.get("delta") or 0.0) for one, said in features.items() if said.get("significant")}
    return {one: moved[one] for one in largest_first(moved, list(moved))}


def _of_explanation(event: Mapping[str, Any]) -> str:
    said, moved = [], named_features(event)
    if event.get("route") == "version":
        said.append(f"version {name(event.get('model_version'))} took over")
    elif event.get("verdict") == "degraded" or not moved:
        verdicts = _VERDICTS_OF_SCORES if is_score((event.get("losses") or {}).get("loss")) else _VERDICTS
        said.append(verdicts.get(str(event.get("verdict")), "it changed"))
    if moved:
        said.append(_moved(moved))
    return ", ".join(said)


def _moved(moved: Mapping[str, float]) -> str:
    shown = list(moved)[:NAMED]
    verbs = ["gained" if moved[feature] > 0 else "lost" for feature in shown]
    parts = [name(feature) for feature in shown]
    said = _joined(parts, verbs)
    return f"{said} importance" if len(moved) <= NAMED else f"{said} importance, and {len(moved) - NAMED} more moved"


def _joined(parts: Sequence[str], verbs: Sequence[str]) -> str:
    if len(set(verbs)) == 1:
        return f"{' and '.join(parts)} {verbs[0]}"
    return " and ".join(f"{part} {verb}" for part, verb in zip(parts, verbs, strict=True))


def _of_loss(event: Mapping[str, Any]) -> str:
    said = _KINDS.get(str(event.get("kind")), "its loss rose")
    suspects = list(named_features(event))
    return said if not suspects else f"{said}, look first at {name(suspects[0])}"
