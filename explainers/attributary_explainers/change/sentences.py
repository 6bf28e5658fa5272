"""Change events as English sentences for people on call."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..losses.statement import is_score, measured
from ..ranking import BAND, SIGNIFICANCE, largest_first
from ..wording import show_count, show_estimate, show_number
from .importance import ImportanceChange
from .verdicts import Estimate, Losses, Onset

Event: TypeAlias = Any
"""An event of the module `events`, which knows this one."""

NAMED = 4
"""Changed features that a sentence names at most; the others are counted."""

QUIET = 3
"""Features within noise that a sentence names at most, the most important first; the others are counted."""

_AWAY = "it has moved away from its reference"

_FOUND = {
    "equal": "since then nothing has changed beyond noise",
    "easier": "the data have become easier",
    "matured": "the data are as they were, and the model is still learning",
    "degraded": "it looked worse than its reference and no longer does",
    "followed": "it is part of a change that was told",
    "harder": "it is part of a change that was told",
    "replaced": "another version has taken over",
    None: "the models cannot be compared",
}

_CHANGED = "the data changed ({loss} of the old model {then} -> {now}), and the model has "

_VERDICTS = {
    "followed": _CHANGED + "followed ({model})",
    "harder": _CHANGED + "not gained on it ({model})",
    "matured": "the data are as they were ({then}, {now}), and the model has learnt more ({model})",
    "degraded": "it is worse ({model}) than the model of {reference} ({now}) on the same observations",
}

_OF_SCORES = {
    "followed": _CHANGED + "followed: it takes them for usual ({model})",
    "harder": _CHANGED + "not followed: it takes them for no more usual ({model})",
    "matured": "the scores of the old model are as they were ({then}, {now}), and its own are lower ({model})",
    "degraded": "on the same observations its mean score is {model}, and {now} by the model of {reference}",
}
"""The same of an anomaly detector: of two scores none is better."""

_FOUND_OF_SCORES = {
    "easier": "the data look less strange than before",
    "degraded": "it scored higher than its reference and no longer does",
}

_PATTERNS = {
    "trend": "; the data keep changing: this is told once",
    "recurring": "; the data go back to what they were: this is told once",
}


def of_alarm(event: Event, model_id: str, shift: int) -> str:
    """Return an alarm's sentence; `shift` is added to observation numbers."""
    at, due = _noticed(event, event.n_observations, shift), show_count(event.due + shift)
    if event.route == "version":
        return f"{model_id} {_version(event)} at {at}: the two are compared on what neither has learnt, until {due}"
    why = _AWAY if event.route == "discrepancy" else _moved_signal(event)
    return f"{model_id} may have changed at {at} ({why}): it is examined until {due}"


def _moved_signal(event: Event) -> str:
    """Return the observed move of the drift detector's signal, in words."""
    is_score_read = event.signal == "score"
    return f"its {'mean score' if is_score_read else 'loss'} {'rose' if event.one_sided else 'moved'}"


def of_not_confirmed(event: Event, model_id: str, shift: int) -> str:
    """Return the sentence of an alarm that was not confirmed."""
    found = _FOUND[event.found]
    if event.losses is not None and is_score(event.losses.loss):
        found = _FOUND_OF_SCORES.get(event.found, found)
    return f"the alarm of {model_id} at {_noticed(event, event.closes, shift)} is not confirmed: {found}"


def of_explanation(event: Event, model_id: str, shift: int) -> str:
    """Return an explanation's sentence: time, change and features."""
    head = f"{model_id} {_head(event, shift)}"
    if event.losses is not None and event.verdict is not None:
        head += f": {_what(event.losses, event.verdict, event.reference_observation + shift)}"
    elif event.losses is not None:
        head += f": {_better(event.losses)}"
    return f"{head}{_PATTERNS.get(event.pattern or '', '')}{_features(event)}"


def _head(event: Event, shift: int) -> str:
    if event.route == "version":
        at, size = _noticed(event, event.n_detected, shift), show_number(event.discrepancy)
        return f"{_version(event)} at {at} (discrepancy {size})"
    if event.verdict is None:
        sides = compared(event.discrepancy, event.threshold)
        return f"changed at {show_count(event.n_observations + shift)} (discrepancy {sides})"
    is_of_scores = event.losses is not None and is_score(event.losses.loss)
    if event.verdict == "matured":
        return f"has matured since {show_count(event.reference_observation + shift)}"
    since = _since(event.onset, event.n_detected, shift)
    if event.verdict == "degraded":
        return f"{'began to score higher' if is_of_scores else 'has become worse'} {since}"
    return f"changed {since}"


def _since(onset: Onset | None, n_detected: int, shift: int) -> str:
    noticed = f"noticed at {show_count(n_detected + shift)}"
    if onset is None:
        return f"({noticed})"
    said = onset.after(shift).sentence(noticed)
    return said if onset.low is None else f"at {said}"


def _what(losses: Losses, verdict: str, reference: int) -> str:
    then = losses.reference_then
    return (_OF_SCORES if is_score(losses.loss) else _VERDICTS)[verdict].format(
        loss=measured(losses.loss),
        then="unknown" if then is None or then.n == 0 else show_number(then.mean),
        now=show_number(losses.reference_now.mean),
        model=show_number(losses.model_now.mean),
        reference=show_count(reference),
    )


def _better(losses: Losses) -> str:
    old, new = losses.reference_now.mean, losses.model_now.mean
    sign = beyond(losses.gain, 0.1 * abs(old))
    word = {1: "lower", -1: "higher", 0: "about equal"}[sign]
    return f"its {measured(losses.loss)} is {word} ({show_number(old)} -> {show_number(new)})"


def beyond(gain: Estimate, margin: float) -> int:
    """Return the gain's sign if 1.96 standard errors beyond `margin`, else 0."""
    if abs(gain.mean) - margin <= BAND * gain.std_error:
        return 0
    return 1 if gain.mean > 0 else -1


def _noticed(event: Event, n: int, shift: int) -> str:
    """Return where an alarm was raised; for a version, its first observation."""
    return show_count(n + shift + (event.route == "version"))


def _version(event: Event) -> str:
    old = f" from version {event.version_before}" if event.version_before is not None else ""
    return f"went{old} to version {event.version}" if event.version is not None else "has a new version"


def _features(event: Event) -> str:
    if event.failure is not None:
        return f"; no importances: {event.failure}"
    if not event.importances:
        return ""
    first = event.first
    named = largest_first(first.delta, [f for f, p in first.p_values.items() if p <= SIGNIFICANCE])
    if not named:
        return "; no feature's importance changed beyond noise"
    delta, error = first.delta, first.delta_std_error
    parts = [_moved(f, delta[f], error.get(f, 0.0), whole=i == 0) for i, f in enumerate(named[:NAMED])]
    if (hidden := len(named) - NAMED) > 0:
        parts.append(f"{hidden} more changed by less")
    return "; " + "; ".join([", ".join(parts), *_quiet(first, named)])


def _quiet(first: ImportanceChange, named: list[Any]) -> list[str]:
    """Return the text on features within noise, most important first."""
    known = set(named)
    size = {f: max(abs(first.before.get(f, 0.0)), abs(first.after.get(f, 0.0))) for f in first.features}
    quiet = largest_first(size, [f for f in first.features if f not in known])
    if not quiet:
        return []
    shown = quiet[:QUIET] if len(quiet) > QUIET + 1 else quiet
    more = f" and {len(quiet) - len(shown)} more" if len(quiet) > len(shown) else ""
    return [f"{', '.join(map(str, shown))}{more} within noise"]


def compared(discrepancy: float, threshold: float) -> str:
    """Return "a > b" or "a <= b", with decimals enough to tell them apart."""
    sign = ">" if discrepancy > threshold else "<="
    for decimals in range(2, 17):
        shown = f"{discrepancy:.{decimals}f}", f"{threshold:.{decimals}f}"
        if shown[0] != shown[1] or discrepancy == threshold:
            break
    return f"{shown[0]} {sign} {shown[1]}"


def _moved(feature: Any, change: float, std_error: float, *, whole: bool) -> str:
    verb, of = ("gained", " of importance") if change > 0 else ("lost", " of its importance")
    return f"{feature} {verb} {show_estimate(abs(change), BAND * std_error)}{of if whole else ''}"
