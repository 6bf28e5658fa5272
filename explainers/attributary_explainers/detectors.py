"""Drift detectors by name, with their parameters checked here.

River takes `ADWIN(delta=5)` without a word, and `clock=0` ends in an exception outside `Exception`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from river import base, drift

from .errors import InvalidParameterError
from .validation import check_choice, check_integer, check_number

Check = Callable[[str, Any], Any]


def _integer(minimum: int) -> Check:
    return lambda name, value: check_integer(name, value, minimum=minimum)


def _number(above: float, below: float = float("inf")) -> Check:
    return lambda name, value: check_number(name, value, above=above, below=below)


_DETECTORS: dict[str, tuple[type[base.DriftDetector], dict[str, Check]]] = {
    "adwin": (
        drift.ADWIN,
        {
            "delta": _number(0.0, 1.0),
            "clock": _integer(1),
            "max_buckets": _integer(2),
            "min_window_length": _integer(1),
            "grace_period": _integer(1),
        },
    ),
    "page_hinkley": (
        drift.PageHinkley,
        {
            "min_instances": _integer(1),
            "delta": _number(-1e-300),
            "threshold": _number(0.0),
            "alpha": lambda name, value: check_number(name, value, above=0.0, maximum=1.0),
            "mode": lambda name, value: check_choice(name, value, ("up", "down", "both")),
        },
    ),
}

DETECTOR_NAMES = tuple(_DETECTORS)
"""Names that `make_detector` knows."""


def make_detector(name: str, parameters: Mapping[str, Any] | None = None) -> base.DriftDetector:
    """A new drift detector.

    Parameters
    ----------
    name
        `adwin` or `page_hinkley`.
    parameters
        Keyword arguments of the River class of that name; River's defaults otherwise. ADWIN: `delta` in
        (0, 1), the confidence value: larger raises more alarms; `clock`, `max_buckets`, `min_window_length`,
        `grace_period`.

    Raises
    ------
    InvalidParameterError
        The detector or one of the parameters is unknown, or out of its range.
    """
    detector, checks = _DETECTORS[check_choice("detector", name, DETECTOR_NAMES)]
    checked: dict[str, Any] = {}
    for parameter, value in (parameters or {}).items():
        if parameter not in checks:
            raise InvalidParameterError(
                f"detector_params of {name}", "parameters out of " + ", ".join(sorted(checks)), parameter
            )
        checked[parameter] = checks[parameter](f"{name}.{parameter}", value)
    return detector(**checked)
