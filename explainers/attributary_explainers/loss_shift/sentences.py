"""Says a shift of the loss in one English sentence, for the person on call."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..change.judging.onset import Onset

Event: TypeAlias = Any
"""An event of the module `events`, which knows this one."""

_NAMED = 4

_KINDS = {
    "worse": "has become worse: it is wronger than it was, given what it predicts",
    "level": "is off its level: the order of observations is as good as before",
    "harder": "loses more because observations are harder: no more than its own doubt says",
    "rose": "loses more than before",
}
_HARDER = "loses more because observations are harder: they come from where more was lost before, too"
_LEVEL = "is off its level: the mean of what it predicts is not that of what comes"
_ENDS = {
    "returned": "is over",
    "settled": "has become another one, which is told next",
    "replaced": "ends: another version has taken over",
}


def of_shift(event: Event, model_id: str) -> str:
    """Return the sentence of a first word: what kind, since when, and by how much."""
    split = ", after the tree has split, and has to learn its new leaves" if event.has_split else ""
    return f"{_head(event, model_id)}{split}; {_figures(event)}"


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
    return f"explained: {_head(event.shift, model_id)}; {_figures(event.shift)}; {found}{unit}"


def of_end(event: Event, model_id: str) -> str:
    """Return the sentence of an end."""
    now = f": the loss is {_text(event.loss.after)} now, and was {_text(event.loss.before)} before it"
    return f"the shift of the loss of {model_id} told at {_number(event.shift.observation)} {_ENDS[event.reason]}" + (
        now if event.reason == "returned" else ""
    )


def _head(event: Event, model_id: str) -> str:
    is_sure = event.excess is not None  # of itself: a model that gives labels or numbers does not say how sure it is
    what = _KINDS[event.kind]
    if not is_sure:
        what = {"harder": _HARDER, "level": _LEVEL}.get(event.kind, what)
    return f"{model_id} {what}, {_since(event.onset, event.observation)}"


def _figures(event: Event) -> str:
    loss = event.loss
    # Of numbers one observation counts twelve times the mean loss at most.
    least = "at least " if event.loss_largest is None and loss.after > 3.0 * loss.before else ""
    said = [f"loss {_text(loss.before)} -> {least}{_text(loss.after)} ({event.loss_name.replace('_', ' ')})"]
    if event.excess is not None and event.kind == "worse":
        said.append(f"{_text(event.excess.after - event.excess.before)} more than such predictions cost before")
    if event.kind == "rose" and event.slope is not None and event.slope.z >= 2.5:
        said.append("and predictions overreach")
    said += [_level(one) for one in event.level] if event.kind == "level" else []
    return ", ".join(said)


def _level(one: Any) -> str:
    if one.label is None:
        return (
            f"targets are {_text(one.observed)} on average where {_text(one.expected)} is predicted: "
            f"adding {one.intercept:+.3g} to predictions mends it"
        )
    said = f"the share of {one.label!r} is {one.observed:.1%} where {one.expected:.1%} is predicted"
    return said if one.intercept is None else f"{said}: adding {one.intercept:+.2f} to its logit mends it"


def _how(one: Any) -> str:
    parts = []
    if one.moved > 0.0:
        parts.append("its values moved")
    if one.p_value <= 0.05:
        parts.append(f"its importance {_text(one.importance_before)} -> {_text(one.importance_after)}")
    return f" ({', '.join(parts)})" if parts else ""


def _since(onset: Onset, told: int) -> str:
    noticed = f"noticed at {_number(told)}"
    if onset.low is None:
        return f"since before {_number(onset.high)} ({noticed})"
    return f"since {_number(onset.observation)} ({_number(onset.low)} to {_number(onset.high)}, {noticed})"


def _number(observation: int) -> str:
    return f"{observation:,}".replace(",", " ")


def _text(value: float) -> str:
    size = abs(value)
    if 0.005 <= size < 1000 or size == 0.0:
        return f"{value:.2f}"
    return f"{value:,.0f}".replace(",", " ") if 1000 <= size < 1e7 else f"{value:.3g}"
