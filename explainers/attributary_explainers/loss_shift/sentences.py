"""Loss shifts as English sentences for the person on call."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..change.sentences import of_onset
from ..wording import show_count, show_number

Event: TypeAlias = Any
"""An event of the module `events`, which knows this one."""

_NAMED = 4

_KINDS = {
    "worse": "has become worse: it is wronger than it was, given what it predicts",
    "level": "is off its level: the order of observations is as good as before",
    "harder": "loses more because observations are harder: no more than its own doubt says",
    "rose": "loses more than before",
}
_SPLIT = "has split its tree and learns the new leaves"
_HARDER = "loses more because observations are harder: they come from where more was lost before, too"
_LEVEL = "is off its level: the mean of what it predicts is not that of what comes"
_LOSSES = {
    "log_loss": "log loss",
    "zero_one": "wrong predictions",
    "absolute": "mean absolute error",
    "squared": "mean squared error",
}
"""Losses in words of their own."""
_ENDS = {
    "returned": "is over",
    "settled": "has become another one, which is told next",
    "replaced": "ends: another version has taken over",
}


def of_shift(event: Event, model_id: str) -> str:
    """Return the sentence of a new shift: its kind, onset and size."""
    what = _SPLIT if event.has_split else ""  # if it lasts, the explanation says that it is worse
    return f"{_head(event, model_id, what)}; {_figures(event)}"


def of_explanation(event: Event, model_id: str) -> str:
    """Return the sentence that names features."""
    named = [one for one in event.features if one.significant]
    said = ", ".join(f"{one.name}{_how(one)}" for one in named[:_NAMED])
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    if named:
        found = f"look first at {said}{more}"
    elif event.features:
        found = "no feature stands out"
    else:
        found = "no model was given to name features by"
    loss = event.importance_loss.partition("(")[0].replace("_", " ")
    unit = f" (importance: {loss} loss)" if named and loss else ""
    return f"explained: {_head(event.shift, model_id)}; {_figures(event.shift, advises=True)}; {found}{unit}"


def of_end(event: Event, model_id: str) -> str:
    """Return the sentence of an end."""
    said = f"the shift of the loss of {model_id} told at {show_count(event.shift.observation)} {_ENDS[event.reason]}"
    if event.reason != "returned":
        return said
    # More may be lost than before, as while a model learns what is new: it says itself that it is less sure.
    again = ": the model is as right as it says again" if event.shift.kind == "worse" and event.shift.excess else ""
    before, after = (_amount(value, event.shift.loss_name) for value in (event.loss.before, event.loss.after))
    return f"{said}{again}{',' if again else ':'} the loss is {after} now, and was {before} before it"


def _head(event: Event, model_id: str, what: str = "") -> str:
    is_sure = event.excess is not None  # of itself: a model that gives labels or numbers does not say how sure it is
    unsure = {} if is_sure else {"harder": _HARDER, "level": _LEVEL}
    what = what or unsure.get(event.kind, _KINDS[event.kind])
    since = of_onset(event.onset, f"noticed at {show_count(event.observation)}")
    return f"{model_id} {what}, since {since}"


def _figures(event: Event, *, advises: bool = False) -> str:
    """Return the event's figures, with a remedy if `advises`.

    A first event rests on too few rows for a remedy.
    """
    loss = event.loss
    # Of numbers one observation counts twelve times the mean loss at most.
    least = "at least " if event.loss_largest is None and loss.after > 3.0 * loss.before else ""
    before, after = (_amount(value, event.loss_name) for value in (loss.before, loss.after))
    said = [f"{_LOSSES.get(event.loss_name, event.loss_name.replace('_', ' ') + ' loss')} {before} -> {least}{after}"]
    more = 0.0 if event.excess is None else event.excess.after - event.excess.before
    if more > 0.0 and event.kind == "worse":
        said.append(
            f"{show_number(100.0 * more)} points more than such predictions had wrong before"
            if event.loss_name == "zero_one"
            else f"{show_number(more)} more than such predictions cost before"
        )
    if event.kind == "rose" and event.slope is not None and event.slope.z >= 2.5:
        said.append("and predictions overreach")
    said += [_level(one, advises=advises) for one in event.level] if event.kind == "level" else []
    return ", ".join(said)


def _amount(value: float, loss_name: str) -> str:
    return f"{show_number(100.0 * value)} %" if loss_name == "zero_one" else show_number(value)


def _level(one: Any, *, advises: bool) -> str:
    if one.label is None:
        mends = f": adding {show_number(one.intercept, signed=True)} to predictions mends it" if advises else ""
        return (
            f"targets are {show_number(one.observed)} on average where {show_number(one.expected)} is predicted{mends}"
        )
    observed, expected = (f"{show_number(100.0 * share)} %" for share in (one.observed, one.expected))
    if one.intercept is None:
        return f"the share of {one.label!r} is {observed} where {expected} is predicted"
    can_be_mended = advises and 0.0 < one.observed < 1.0
    unless = "if labels are complete, " if one.intercept < 0.0 else ""
    mends = f": {unless}adding {one.intercept:+.2f} to its logit mends it" if can_be_mended else ""
    return f"the share of {one.label!r} is {observed} where such predictions had {expected} before{mends}"


def _how(one: Any) -> str:
    parts = []
    if one.moved > 0.0:
        parts.append("its values moved")
    if one.p_value <= 0.05:
        parts.append(f"its importance {show_number(one.importance_before)} -> {show_number(one.importance_after)}")
    return f" ({', '.join(parts)})" if parts else ""
