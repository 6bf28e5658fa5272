"""Puts an incident into a headline and a sentence for the person on call: the verdict first, then the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..wording import show_count, show_number

Incident: TypeAlias = Any
"""Of the module `incident`, which knows this one."""

_NAMED = 3
_NUMBERS = "the predictions of {model} "

_SUSPECTED = {
    "inputs": "{feature} of {model} may be broken",
    "worse": "{model} may be worse",
    "changed": "the data of {model} may have changed",
    "level": "the base rate of {model} may have moved",
    "harder": "the data of {model} may have changed",
    "relies_differently": "{model} may use its features differently",
    "version": "{model} has a new version, which is being compared with the old one",
    "recovered": "{model} failed on every observation, and was reset to an earlier state",
}
_CONFIRMED = {
    "inputs": "{feature} of {model} is broken",
    "worse": "{model} is worse",
    "changed": "the data of {model} have changed, and it has adapted",
    "level": "the base rate of {model} has moved",
    "harder": "the data of {model} have become harder to predict",
    "relies_differently": "{model} uses its features differently",
    "version": "the new version of {model} is as good as the old one",
    "recovered": "{model} failed on every observation, and was reset to an earlier state",
}
_STILL = {
    "inputs": "{feature} of {model} is still broken",
    "worse": "{model} is still worse",
    "changed": "{model} is still adapting to changed data",
    "level": "the base rate of {model} is still off",
    "harder": "the data of {model} are still harder to predict",
    "relies_differently": "{model} still uses its features differently",
    "version": "the new version of {model} is still worse than the old one",
    "recovered": "{model} is still worse than before it failed and was reset",
}
_RETURNED = {
    "inputs": "{feature} of {model} is fine again",
    "worse": "{model} has recovered",
    "changed": "the data of {model} have changed, and it has adapted",
    "level": "the base rate of {model} is back where it was",
    "harder": "the data of {model} are as easy to predict as before",
    "relies_differently": "{model} uses its features differently, and is as good as before",
    "version": "the new version of {model} is as good as the old one",
    "recovered": "{model} is as good as before it failed and was reset",
}
_SETTLED = {
    "inputs": "{feature} of {model} has not gone back",
    "worse": "{model} has not fully recovered",
    "changed": "the data of {model} have changed, and it has adapted",
    "level": "the base rate of {model} stays at its new level",
    "harder": "the data of {model} are harder to predict for good",
    "relies_differently": "{model} uses its features differently, and is as good as before",
    "version": "the new version of {model} stays worse than the old one",
    "recovered": "{model} stays worse than before it failed and was reset",
}
_LEVEL_OF_NUMBERS = {
    "suspected": _NUMBERS + "may be off by a constant",
    "confirmed": _NUMBERS + "are off by a constant",
    "lasts": _NUMBERS + "are still off by a constant",
    "returned": _NUMBERS + "are right on average again",
    "settled": _NUMBERS + "stay off by a constant",
}
_USELESS = {
    "suspected": "{model} may be useless: worse than always predicting the same",
    "confirmed": "{model} is useless: worse than always predicting the same",
    "lasts": "{model} is still useless: worse than always predicting the same",
    "settled": "{model} stays useless: worse than always predicting the same",
}
_BEGAN = {
    "inputs": "the fault", "changed": "the change", "relies_differently": "the change", "version": "the change",
}  # fmt: skip
DID_TOGETHER = {
    "inputs": "got broken values",
    "changed": "changed",
    "worse": "became worse",
    "level": "moved their level",
    "harder": "became harder to predict",
    "relies_differently": "came to use features differently",
    "version": "took over another version",
    "recovered": "failed and went back",
}
"""What several models did together, by what happened to each."""
_ADVICE = {
    "look_at_labels": "Check the labels",
    "retrain": "Train it again",
    "roll_back": "Roll back",
}


def headline_of(incident: Incident, model_id: str) -> str:
    """Return the verdict alone."""
    names = {"model": model_id, "feature": next((str(one.name) for one in incident.features), "a feature")}
    if incident.life == "withdrawn":
        said = "{model} has not changed after all"
    elif incident.reason == "replaced":
        said = "another version of {model} took over"
    elif incident.what == "version" and incident.life != "suspected" and not _known(incident):
        said = "{model} has a new version"  # and nobody knows whether it is better
    elif incident.what == "level" and incident.effects and not _has_errors(incident):
        state = incident.reason if incident.life == "over" or incident.reason == "lasts" else incident.life
        said = _LEVEL_OF_NUMBERS[state]
    elif incident.what == "worse" and _constant(incident) is not None and incident.reason != "returned":
        said = _USELESS[incident.reason if incident.life == "over" or incident.reason == "lasts" else incident.life]
    elif incident.life == "over":
        said = (_RETURNED if incident.reason == "returned" else _SETTLED)[incident.what]
    elif incident.life == "suspected":
        said = _SUSPECTED[incident.what]
    elif incident.reason == "lasts":
        said = _STILL[incident.what]
    elif incident.what == "changed" and incident.severity == "warning":
        said = "the data of {model} have changed, and it is adapting"
    elif incident.what == "version" and incident.advice == "roll_back":
        said = "the new version of {model} is worse than the old one"
    else:
        said = _CONFIRMED[incident.what]
    return (said[0].upper() + said[1:]).format(**names)


def sentence_of(incident: Incident, model_id: str) -> str:
    """Return the verdict, since when, how much, which features, and what to do."""
    headline, at = headline_of(incident, model_id), show_count(incident.since.observation)
    if incident.life == "withdrawn":
        return f"{headline}: what was noticed at observation {at} was not confirmed."
    if incident.reason == "replaced":
        return f"{headline}: what began at observation {at} is closed."
    broken = next((one.said for one in incident.features if one.said), "")
    is_there = incident.what == "inputs" and incident.reason != "returned"
    said = f": it {broken}" if broken and is_there else ""
    effect = _effect(incident)
    what = _BEGAN.get(incident.what, "the trouble") if incident.life == "over" else "it"
    began = "was noticed" if incident.since.low is None and incident.what != "version" else "began"
    when = f"{what[0].upper()}{what[1:]} {began} at observation {at}" + (f": {effect}" if effect else "")
    return ". ".join([headline + said, when, *_rest(incident)]) + "."


def _has_errors(incident: Incident) -> bool:
    return any(one.name == "error rate" for one in incident.effects)


def _known(incident: Incident) -> list[Any]:
    """Return the effects whose mean is known before and now."""
    return [one for one in incident.effects if one.before is not None and one.now is not None]


def _rest(incident: Incident) -> list[str]:
    if incident.life == "suspected" and incident.what != "inputs":
        return ["No action needed yet"]
    is_done = incident.life == "over" and incident.reason == "returned" and incident.what != "changed"
    features = "" if is_done else _features(incident)
    return [part for part in (features, "" if is_done else _advice(incident)) if part]


def _effect(incident: Incident) -> str:
    constant = _constant(incident)
    if constant is not None:
        own = next(one for one in reversed(incident.effects) if one.name != "constant").now
        times = f", {show_number(own.value / constant.value)} times that of a constant" if constant.value else ""
        return f"its error is {_number(own)} now{times}"
    known = _known(incident)
    if incident.what == "relies_differently":
        return ""  # the loss did not move
    if not known or incident.life == "suspected" or (incident.what == "inputs" and incident.severity == "warning"):
        return ""  # the latest window is hardly of it yet
    one = known[-1]
    show = _percent if one.name == "error rate" else _number
    name = "errors" if one.name == "error rate" else f"the {one.name}"
    be = ("are", "were") if one.name == "error rate" else ("is", "was")
    if incident.life == "over" and one.after is not None:
        return f"{name} went from {show(one.before)} to {show(one.after)} and {be[0]} {show(one.now)} now"
    return f"{name} {be[0]} {show(one.now)} now, and {be[1]} {show(one.before)} before"


def _constant(incident: Incident) -> Any:
    """Return the error of a constant prediction, where the model's is worse; else None."""
    return next((one.now for one in incident.effects if one.name == "constant"), None)


def _percent(share: Any) -> str:
    return f"{show_number(100.0 * share.value)} %"


def _number(mean: Any) -> str:
    return show_number(mean.value)


def _features(incident: Incident) -> str:
    broken = [one for one in incident.features if one.said]
    if incident.what == "inputs" and len(broken) > 1:
        return f"So {'is' if len(broken) == 2 else 'are'} {_names(broken[1:])}"
    named = [one for one in incident.features if one.significant and one.delta]
    if not named or incident.what in ("inputs", "level", "harder") or incident.advice == "look_at_inputs":
        return ""
    if incident.advice == "look_at_labels":
        return "Many features lose importance at once, which points at the labels"
    named = named[:_NAMED]
    more, less = (_names([one for one in named if (one.delta > 0.0) is is_more]) for is_more in (True, False))
    return "It relies " + " and ".join(
        part for part in (more and f"more on {more}", less and f"less on {less}") if part
    )


def _advice(incident: Incident) -> str:
    if incident.advice == "look_at_inputs":
        named = [one for one in incident.features if one.said] if incident.what == "inputs" else []
        named = named or [one for one in incident.features if one.moved or one.significant]
        return f"Check the source of {_names(named)}" if named else "Check the inputs"
    if incident.advice == "shift_intercept" and incident.intercept is not None:
        to = "the logit of its predictions" if _has_errors(incident) else "what it predicts"
        unless = ", if you have not yet" if incident.life == "over" else ""
        do = f"Add {show_number(incident.intercept)} to" if incident.intercept > 0.0 else None
        do = do or f"Subtract {show_number(-incident.intercept)} from"
        return f"{do} {to}{unless}"
    if incident.what == "changed" and incident.life == "over":
        return ""
    is_adapting = incident.what == "changed" and incident.severity == "warning"
    return _ADVICE.get(incident.advice, "No action needed yet" if is_adapting else "No action needed")


def _names(features: Sequence[Any]) -> str:
    names = [str(one.name) for one in features[:_NAMED]]
    if len(features) > _NAMED:
        names.append(f"{len(features) - _NAMED} more")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
