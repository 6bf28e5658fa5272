"""Values as Grafana writes them, of the units that the dashboards use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_SI = ((1e9, " Bil"), (1e6, " Mil"), (1e3, " K"))
_BYTES = ((2**30, " GiB"), (2**20, " MiB"), (2**10, " KiB"))
_AGES = ((86400, "days"), (3600, "hours"), (60, "minutes"))


def shown(value: float, unit: str, decimals: int | None = None, now: float = 0.0) -> str:
    """A value with its unit; `now`, in seconds, is what ages are counted from."""
    if math.isnan(value):
        return "NaN"
    if unit == "percentunit":
        return f"{_number(value * 100, decimals)}%"
    if unit == "bytes":
        return _scaled(value, _BYTES, " B", decimals)
    if unit == "s":
        if abs(value) >= 60:
            return f"{_number(value / 60, decimals)} min"
        return f"{_number(value * 1000, decimals)} ms" if abs(value) < 1 and value else f"{_number(value, decimals)} s"
    if unit == "ops":
        return f"{_scaled(value, _SI, '', decimals)} ops/s"
    if unit == "dateTimeFromNow":
        age = now - value / 1000
        size, name = next(((size, name) for size, name in _AGES if age >= size), (1, "seconds"))
        return f"{age / size:.0f} {name} ago"
    return _scaled(value, _SI, "", decimals) if unit == "short" else _number(value, decimals)


def _scaled(value: float, scales: Sequence[tuple[float, str]], plain: str, decimals: int | None) -> str:
    size, name = next(((size, name) for size, name in scales if abs(value) >= size), (1.0, plain))
    return f"{_number(value / size, decimals)}{name}"


def _number(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def coloured(value: float, steps: Sequence[dict[str, Any]]) -> str:
    """The colour of a value by its thresholds."""
    return next((step["color"] for step in reversed(steps) if step["value"] is None or value >= step["value"]), "green")
