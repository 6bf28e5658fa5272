"""Makes what reads the predictions of a model, by what it predicts."""

from __future__ import annotations

from ...typing import Output, Snapshot
from .base import Signals
from .classes import ClassSignals
from .numbers import NumberSignals


def signals_of(output: Output, learns: bool) -> Signals:
    """Return what reads predictions of this kind, before the first observation."""
    if output == "number":
        return NumberSignals(learns)
    return ClassSignals(learns, has_probabilities=output == "probabilities")


def restored_signals(output: Output, learns: bool, state: Snapshot) -> Signals:
    """Return the signals whose snapshot this is."""
    found = signals_of(output, learns)
    found.restore(state)
    return found
