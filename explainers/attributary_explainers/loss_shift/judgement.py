"""Judgement of a shift's kind, by how far each signal moved."""

from __future__ import annotations

import numpy as np

from ..typing import Array, Output
from .events import Kind, LevelMoved, Moved
from .ladder import Look
from .signal.base import Signals

ROSE = 3.0
"""Standard errors by which a loss has risen clearly."""
_BAND = 1.96
_CLEARLY, _SOMEWHAT = 3.0, 2.5
"""Standard errors by which the level has moved, and by which excess or slope have."""
_STEADY, _LARGE = 2.0, 6.0
"""Standard errors of the slope below which the order of observations counts as being as good as before: two, or a
sixth of those of the level."""


def kind_of(look: Look, signals: Signals, output: Output, expected: Array) -> Kind:
    """Return the kind of a shift by how far each signal has moved.

    The thresholds are standard errors. `expected` has the mean predictions in the window, shape (levels,).
    """
    names = signals.names
    levels = [j for j, name in enumerate(names) if name == "level"]
    level = max((abs(float(look.z[j])) for j in levels), default=0.0)
    z = {name: float(look.z[j]) for j, name in enumerate(names) if name != "level"}
    slope, excess = z.get("slope", 0.0), z.get("excess", 0.0)
    is_worse = slope >= _SOMEWHAT or excess >= _SOMEWHAT
    if level >= _CLEARLY and _is_of_level(look, output, level):
        is_dear = is_worse or (output != "probabilities" and z["loss"] > ROSE)
        if slope < max(_STEADY, level / _LARGE) and not (
            is_dear and _predictions_moved(look, signals, levels, expected)
        ):
            return "level"
    if is_worse:
        return "worse"
    return "harder" if output == "probabilities" else "rose"


def _is_of_level(look: Look, output: Output, level: float) -> bool:
    """Return whether the level is the move to report, not the loss."""
    if output == "label":  # whether the order is as good as before is not known
        return bool(look.z[0] < _SOMEWHAT)
    if output == "number":
        return bool(level >= 0.5 * look.z[0])
    # A model that learns is off its level now and then; that is told where nothing else has moved.
    return bool(look.z[1] < _SOMEWHAT)


def _predictions_moved(look: Look, signals: Signals, levels: list[int], expected: Array) -> bool:
    """Return whether predictions moved and the observed level did not.

    Then what the model reads has changed, and not the base rate.
    """
    if not signals.usual:
        return False
    level = int(np.argmax(abs(look.z[levels])))
    off = float(look.difference[levels[level]])
    observed = off + float(expected[level]) - signals.usual[level]
    return bool(observed * np.sign(off) < 0.5 * abs(off))


def moved(look: Look, column: int, signals: Signals) -> Moved:
    """Return how far a signal has moved, in the unit that people read."""
    before, difference, half = (
        signals.value(column, float(value))
        for value in (look.before[column], look.difference[column], _BAND * look.error[column])
    )
    return Moved(before, before + difference, difference - half, difference + half, float(look.z[column]))


def levels_of(look: Look, signals: Signals, expected: Array) -> tuple[LevelMoved, ...]:
    """Return the clearly moved levels, each with its correcting intercept."""
    columns = [j for j, name in enumerate(signals.names) if name == "level"]
    usual = [mean for _, mean in signals.spread(np.array(signals.usual))] if signals.usual else [None] * len(columns)
    found = []
    for level, (j, (label, mean), was) in enumerate(zip(columns, signals.spread(expected), usual, strict=True)):
        if abs(float(look.z[j])) >= _CLEARLY:
            off, difference = signals.value(j, float(look.before[j])), float(look.difference[j])
            observed = mean + off + signals.value(j, difference)
            before = None if was is None else was + off
            found.append(LevelMoved(label, mean, observed, signals.intercept(level, difference), before))
    return tuple(found)
