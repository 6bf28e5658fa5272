"""Words for an incident: headline and sentence for the person on call.

The verdict comes first, then the figures.
"""

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
_ERRORS = {"error rate": ("errors", "are", "were"), "mean absolute error": ("its average error", "is", "was")}
_SHARE = "share of "
_DO = {
    "look_at_labels": "check the labels; if they are right, train it again",
    "retrain": "train it again",
    "roll_back": "roll back to the version before",
    "nothing": "find out what was changed just before it began",
}
"""What to do by the advice; `nothing` where somebody has been woken, and a cause is not known yet."""


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
    elif incident.what == "version" and incident.severity != "info":
        said = "the new version of {model} is worse than the old one"
    else:
        said = _CONFIRMED[incident.what]
    return (said[0].upper() + said[1:]).format(**names)


def action_of(incident: Incident) -> str:
    """Return the action to take, and whether now or in the morning."""
    if incident.life == "withdrawn" or incident.reason in ("returned", "replaced"):
        return "Nothing to do."
    is_now = incident.severity == "critical" and incident.life != "over"
    if incident.advice == "nothing" and not is_now:
        if incident.life == "suspected":
            return "Nothing to do yet: it is not confirmed."
        is_adapting = incident.what == "changed" and incident.severity == "warning" and incident.life != "over"
        return "Nothing to do unless it stays worse." if is_adapting else "Nothing to do."
    return f"{'Act now' if is_now else 'Can wait until morning'}: {_do(incident)}."


def details_of(incident: Incident) -> str:
    """Return the details: fault of values, onset, extent and features."""
    at = show_count(incident.since.observation)
    if incident.life == "withdrawn":
        return f"What was noticed at observation {at} was not confirmed."
    if incident.reason == "replaced":
        return f"What began at observation {at} is closed."
    is_there = incident.reason != "returned"
    told = (one for one in incident.features if one.is_broken or (one.said and incident.what != "version"))
    said = next((f"{one.name} {one.said}" for one in told if is_there), "")
    parts = (said, _since(incident, at), _unseen(incident), _features(incident))
    return " ".join(f"{part}." for part in parts if part)


def sentence_of(incident: Incident, model_id: str) -> str:
    """Return the verdict, the action and the details."""
    return f"{headline_of(incident, model_id)}. {action_of(incident)} {details_of(incident)}"


def _since(incident: Incident, at: str) -> str:
    effect = _effect(incident)
    if incident.since.low is None and incident.what != "version":
        return f"It was noticed at observation {at}" + (f": {effect}" if effect else "")
    if effect:
        return f"Since observation {at}, {effect}"
    return (
        f"What began at observation {at} is over" if incident.reason == "returned" else f"It began at observation {at}"
    )


def _has_errors(incident: Incident) -> bool:
    return any(one.name == "error rate" for one in incident.effects)


def _known(incident: Incident) -> list[Any]:
    """Return the effects whose mean is known before and now."""
    return [one for one in incident.effects if one.before is not None and one.now is not None]


def _effect(incident: Incident) -> str:
    """Return the cost of the incident, before and now."""
    constant = _constant(incident)
    if constant is not None:
        own = next(one for one in reversed(incident.effects) if one.name != "constant").now
        times = f", {show_number(own.value / constant.value)} times that of a constant" if constant.value else ""
        return f"its average error is {show_number(own.value)}{times}"
    is_early = incident.life == "suspected"
    if (is_early and incident.severity != "critical") or incident.what == "relies_differently" or _unseen(incident):
        return ""  # too little is of it yet; the loss did not move
    if incident.what == "level" and (level := next((one for one in incident.effects if _is_level(one.name)), None)):
        return "" if incident.reason == "returned" else _level(level)
    known = [one for one in incident.effects if one.before is not None and not _is_level(one.name)]
    if not known or (present := known[-1].after if is_early else known[-1].now) is None:
        return ""
    one = known[-1]
    name, be, been = _ERRORS.get(one.name, ("the loss", "is", "was"))
    before, now = _shown(one.name, one.before.value), _shown(one.name, present.value)
    if incident.life == "over" and one.after is not None:
        return f"{name} went from {before} to {_shown(one.name, one.after.value)}, and {be} {now} now"
    is_up = one.name != "error rate" or present.value > one.before.value or incident.what not in ("worse", "harder")
    return f"{name} {be} {now}, and {been} {before} before" + (
        "" if is_up else ", but its probabilities are further off"
    )


def _unseen(incident: Incident) -> str:
    """Return a note if it is unknown whether broken values raise the error.

    Empty where that is known.
    """
    if incident.what != "inputs" or incident.life == "over":
        return ""
    if not _known(incident):
        return "No label says yet whether it errs more"
    is_open = incident.severity == "warning" and incident.reason != "lasts"
    return "Its errors are not clearly up so far" if is_open else ""


def _is_level(name: str) -> bool:
    """Return whether an effect is a move of the base rate or mean target."""
    return name == "mean target" or name.startswith(_SHARE)


def _shown(name: str, value: float) -> str:
    """Return the value of an effect in a unit that people read."""
    is_share = name == "error rate" or name.startswith(_SHARE)
    return f"{show_number(100.0 * value)} %" if is_share else show_number(value)


def _level(one: Any) -> str:
    """Return both means of a level that moved."""
    on_average = " on average" if one.name == "mean target" else ""
    name, now = "the target" if on_average else f"the {one.name}", _shown(one.name, one.now.value)
    was = "" if one.before is None else f", and was {_shown(one.name, one.before.value)} before"
    return f"{name} is {now}{on_average}{was}"


def _constant(incident: Incident) -> Any:
    """Return a constant prediction's error if the model's is worse, or None."""
    return next((one.now for one in incident.effects if one.name == "constant"), None)


def _features(incident: Incident) -> str:
    if incident.life == "suspected" and incident.what != "inputs":
        return ""
    if incident.life == "over" and incident.reason == "returned" and incident.what != "changed":
        return ""
    broken = [one for one in incident.features if one.is_broken]
    if incident.what == "inputs" and len(broken) > 1:
        return f"So {'is' if len(broken) == 2 else 'are'} {_names(broken[1:])}"
    named = [one for one in incident.features if one.significant and one.delta]
    if incident.advice == "look_at_labels":
        if any(one.is_mirrored for one in incident.effects):
            return "It is wrong where it was right, as if labels were turned round"
        is_many = len(named) > 1 and all(one.delta < 0.0 for one in named)
        return "Many features lose importance at once, which points at the labels" if is_many else ""
    if not named or incident.what in ("inputs", "level", "harder") or incident.advice == "look_at_inputs":
        return ""
    named = named[:_NAMED]
    more, less = (_names([one for one in named if (one.delta > 0.0) is is_more]) for is_more in (True, False))
    return "It relies " + " and ".join(
        part for part in (more and f"more on {more}", less and f"less on {less}") if part
    )


def _do(incident: Incident) -> str:
    if incident.advice == "look_at_inputs":
        broken = [one for one in incident.features if one.is_broken]
        moved = broken or [one for one in incident.features if one.moved]
        named = moved or [one for one in incident.features if one.significant]
        do = f"check the source of {_names(named)}" if named else "check the inputs"
        if incident.what != "worse" or broken:
            return do
        right = "its values are" if moved else "they are"
        return f"{do}{'' if moved else ', and the labels'}; if {right} right, train it again"
    if incident.advice == "shift_intercept" and incident.intercept is not None:
        to = "the logit of its predictions" if _has_errors(incident) else "what it predicts"
        unless = ", if you have not yet" if incident.life == "over" else ""
        size, is_up = show_number(abs(incident.intercept)), incident.intercept > 0.0
        return f"{f'add {size} to' if is_up else f'subtract {size} from'} {to}{unless}"
    return _DO[incident.advice]


def _names(features: Sequence[Any]) -> str:
    names = [str(one.name) for one in features[:_NAMED]]
    if len(features) > _NAMED:
        names.append(f"{len(features) - _NAMED} more")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
