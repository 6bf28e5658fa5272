"""Equality of live objects, all the way down: two states are equal where their fingerprints are."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import islice
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from attributary_agents.models.model_state import ModelState
from attributary_explainers import dump_model, load_model


def of_state(state: ModelState) -> dict[str, Any]:
    """Everything of a state that decides its future, as nested plain data."""
    return {
        # Both through the same bytes: what the format leaves out is no difference.
        "model": plain(load_model(dump_model(state.model))),
        "version": state.version,
        "explainers": {name: plain(explainer.snapshot()) for name, explainer in state.explainers.items()},
        "mdi": plain(state.mdi.snapshot()) if state.mdi else None,
        "pdp": plain(state.pdp.snapshot()) if state.pdp else None,
        "change": plain(state.change.snapshot()) if state.change else None,
        "publications": {name: plain(one.snapshot()) for name, one in state.publications.items()},
        "shifts": {name: plain(watch.snapshot()) for name, watch in state.shifts.items()},
        "loss": plain(state.loss_watch.snapshot()) if state.loss_watch else None,
        "losses": plain([state.model_loss.snapshot(), state.baseline_loss.snapshot(), state.marginal.snapshot()]),
        "quality": plain(state.quality.snapshot()) if state.quality else None,
        "counts": plain(state.counts.snapshot()),
        "late": plain(state.late.snapshot()) if state.late else None,
        "present loss": plain(state.present_loss.snapshot()) if state.present_loss else None,
        "mismatch": plain(state.mismatch.snapshot()),
        "observations": (state.n_observations, state.n_failed),
        "times": state.last_observation_ms,
        "incidents": plain(state.incident_watch.snapshot()) if state.incident_watch else None,
        "position": (state.partition, state.offset),
    }


def plain(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Nested tuples and texts; objects by their class and what they would be pickled as.

    Numbers with all their digits, so that not even a last bit may differ.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, bytes):
        return _of_bytes(value)
    if id(value) in above:
        return f"<{len(above) - above.index(id(value))} above>"
    within = (*above, id(value))
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes() if value.dtype != object else plain(value.tolist(), within)
    if type(value) in (list, tuple):
        return type(value).__name__, *(plain(item, within) for item in value)
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, *sorted((plain(item, within) for item in value), key=repr)
    if isinstance(value, random.Random):
        return "Random", value.getstate()
    if type(value) is dict:
        return "dict", *((plain(key, within), plain(item, within)) for key, item in value.items())
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return f"{value.__module__}.{value.__qualname__}"
    made, arguments, *rest = value.__reduce_ex__(4) + (None,) * 3
    state, items, pairs = islice(rest, 3)
    return (
        f"{type(value).__module__}.{type(value).__qualname__}",
        plain(made, within),
        plain(arguments, within),
        plain(state, within),
        plain(list(items or ()), within),
        plain(list(pairs or ()), within),
    )


def _of_bytes(value: bytes) -> Any:
    # A pickle is not canonical: equal objects have several, so the objects are compared.
    try:
        return "pickled", plain(load_model(value)) if value[:1] == b"\x80" else value
    except Exception:  # noqa: BLE001 - no pickle after all
        return value


def differences(found: Any, expected: Any, where: str = "") -> Iterator[str]:
    """Where two fingerprints differ, in words."""
    if isinstance(found, Mapping) and isinstance(expected, Mapping):
        for name in {**found, **expected}:
            yield from differences(found.get(name), expected.get(name), f"{where}.{name}" if where else str(name))
    elif isinstance(found, tuple) and isinstance(expected, tuple) and len(found) == len(expected):
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from differences(one, other, f"{where}[{i}]")
    elif found != expected:
        yield f"{where}: {str(found)[:80]}, expected {str(expected)[:80]}"
