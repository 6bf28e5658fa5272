"""Makes drift detectors by name, and checks their parameters.

River takes most parameters without a word, and some end in an alarm that never comes, in a ValueError hundreds of
observations later (KSWIN's `window_size=40`), in an exception outside `Exception` (ADWIN's `clock=0`) or in the end of
the process (ADWIN's `max_buckets=2**31 - 1`).
"""

from __future__ import annotations

import inspect
import math
import secrets
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from river import base, drift

from ..errors import InvalidParameterError
from ..validation import check_choice, check_integer, check_number

Check = Callable[[str, Any], Any]
Parameters = dict[str, Any]

_LARGEST = 2**31 - 1  # of ADWIN's compiled part; larger ones are an OverflowError there


class _PageHinkley(drift.PageHinkley):
    """River's detector, but `drift_detected` is a `bool` for numpy, too."""

    def update(self, x: float) -> None:
        super().update(float(x))  # type: ignore[no-untyped-call]  # River's detectors are untyped


class _RisingADWIN(drift.ADWIN):
    """River's detector, alarming only on a rise; a fall drops old values."""

    def update(self, x: float) -> None:
        before = self.estimation
        super().update(x)  # type: ignore[no-untyped-call]  # River's detectors are untyped
        # Read after a detection: the mean of the newest values alone, for the older ones have been dropped.
        if self._drift_detected and self.estimation <= before:
            self._drift_detected = False


class _RisingKSWIN(drift.KSWIN):
    """River's detector, alarming only if the newest values are larger."""

    def update(self, x: float) -> None:
        values = [*self.window, x][-self.window_size :]  # River keeps the newest alone after a detection
        super().update(x)  # type: ignore[no-untyped-call]  # River's detectors are untyped
        if self._drift_detected:
            newest, others = values[-self.stat_size :], values[: -self.stat_size]
            self._drift_detected = sum(newest) * len(others) > sum(others) * len(newest)


class _FHDDM(drift.binary.FHDDM):
    """River's detector, fed as in the paper: 1 for a correct prediction.

    River compares (largest mean) - (mean) with epsilon, as the paper does, but says that 1 is an error: fed errors it
    raises an alarm when the error falls and none when it rises.
    """

    def update(self, x: float) -> None:
        super().update(1 - x)  # type: ignore[no-untyped-call]  # River's detectors are untyped


def _integer(minimum: int, maximum: int = _LARGEST) -> Check:
    def check(name: str, value: Any) -> int:
        number = check_integer(name, value, minimum=minimum)
        if number > maximum:
            raise InvalidParameterError(name, f"an integer >= {minimum} and <= {maximum}", value)
        return number

    return check


def _number(above: float = -math.inf, below: float = math.inf, **limits: float) -> Check:
    return lambda name, value: check_number(name, value, above=above, below=below, **limits)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidParameterError(name, "true or false", value)
    return value


def _optional(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


_PROBABILITY = _number(0.0, 1.0)

_DETECTORS: dict[str, tuple[type[base.DriftDetector] | type[base.BinaryDriftDetector], dict[str, Check]]] = {
    "adwin": (
        drift.ADWIN,
        {
            "delta": _PROBABILITY,
            "clock": _integer(1),
            # Rows of so many buckets are allocated at once: a wrong zero more must not end the process.
            "max_buckets": _integer(2, 1000),
            "min_window_length": _integer(1),
            "grace_period": _integer(1),
        },
    ),
    "page_hinkley": (
        _PageHinkley,
        {
            "min_instances": _integer(1),
            "delta": _number(minimum=0.0),
            "threshold": _number(0.0),
            "alpha": _number(0.0, maximum=1.0),
            "mode": lambda name, value: check_choice(name, value, ("up", "down", "both")),
        },
    ),
    "kswin": (
        drift.KSWIN,
        {"alpha": _PROBABILITY, "window_size": _integer(2), "stat_size": _integer(1), "seed": _integer(0, 2**63 - 1)},
    ),
    "ddm": (
        drift.binary.DDM,
        {"warm_start": _integer(1), "warning_threshold": _number(0.0), "drift_threshold": _number(0.0)},
    ),
    "eddm": (drift.binary.EDDM, {"warm_start": _integer(1), "alpha": _PROBABILITY, "beta": _PROBABILITY}),
    "fhddm": (
        _FHDDM,
        {
            "sliding_window_size": _integer(1),
            "confidence_level": _PROBABILITY,
            "short_window_size": _optional(_integer(1)),
        },
    ),
    "hddm_a": (
        drift.binary.HDDMA,
        {"drift_confidence": _PROBABILITY, "warning_confidence": _PROBABILITY, "two_sided_test": _flag},
    ),
    "hddm_w": (
        drift.binary.HDDMW,
        {
            "drift_confidence": _PROBABILITY,
            "warning_confidence": _PROBABILITY,
            "lambda_val": _number(0.0, maximum=1.0),
            "two_sided_test": _flag,
        },
    ),
}

_RISING: dict[str, type[base.DriftDetector]] = {"adwin": _RisingADWIN, "kswin": _RisingKSWIN}
"""One-sided classes, of the detectors that have no parameter for it."""

DETECTOR_NAMES = tuple(_DETECTORS)
"""Names that `make_detector` accepts."""

DETECTORS_OF_ERRORS: frozenset[str] = frozenset({"ddm", "eddm", "fhddm", "hddm_a", "hddm_w"})
"""Names of the detectors that read errors, 0 or 1, and nothing else: they need the signal `zero_one`."""

# What decides the warnings, which nobody reads here, and what decides the alarms: no warning comes after its alarm.
_WARNINGS = {
    "ddm": ("warning_threshold", "drift_threshold", "<="),
    "eddm": ("alpha", "beta", ">="),
    "hddm_a": ("warning_confidence", "drift_confidence", ">="),
    "hddm_w": ("warning_confidence", "drift_confidence", ">="),
}


def make_detector(
    name: str, parameters: Mapping[str, Any] | None = None, *, seed: int | None = None, one_sided: bool = False
) -> base.DriftDetector | base.BinaryDriftDetector:
    """Return a drift detector by name.

    Call `update(value)` per observation; `drift_detected` says whether that alarmed. Every detector forgets everything
    with the first update after an alarm, and goes on as a new one would. River's ADWIN and KSWIN do so too, although
    their papers keep the newest observations.

    | name | alarm | values | also when the error falls |
    | --- | --- | --- | --- |
    | `adwin` | means of two parts of an adaptive window differ | finite numbers | yes |
    | `page_hinkley` | summed deviations from the mean left their extreme by `threshold` | finite numbers | by `mode` |
    | `kswin` | newest values and a draw of older ones are distributed differently | finite numbers | yes |
    | `ddm` | error rate is `drift_threshold` deviations above its least | 0, 1 | no |
    | `eddm` | distance between errors shrank to the share `beta` of its greatest | 0, 1 | no |
    | `fhddm` | accuracy of a window fell below its greatest by a Hoeffding bound | 0, 1 | no |
    | `hddm_a` | mean error rose over its past by a Hoeffding bound | 0, 1 | with `two_sided_test` |
    | `hddm_w` | smoothed error rose over its past by a McDiarmid bound | 0, 1 | with `two_sided_test` |

    Parameters
    ----------
    name
        One of `DETECTOR_NAMES`. Those of `DETECTORS_OF_ERRORS` read 1 for an error and 0 otherwise.
    parameters
        Keyword arguments of the River class; River's defaults otherwise. Integers are at most 2**31 - 1.

        `adwin`: `delta` in (0, 1), the confidence value: larger raises more alarms. `clock` >= 1, observations
        from one check to the next: larger is cheaper and later. `max_buckets` in 2 ... 1000: larger is finer and
        costs memory. `min_window_length` >= 1, of either part, and `grace_period` >= 1, observations before the
        first check: larger gives fewer false alarms.

        `page_hinkley`: `threshold` > 0, in the signal's unit times observations: larger raises fewer and later
        alarms. `delta` >= 0, the deviation that is let pass, in the signal's unit: larger raises fewer. `alpha` in
        (0, 1] forgets the sums: smaller forgets faster; on errors no alarm can come where
        `threshold` > 2 / (1 - alpha). `min_instances` >= 1, observations before the first alarm.
        `mode`: `up`, `down` or `both`.

        `kswin`: `alpha` in (0, 1), level of the Kolmogorov-Smirnov test of each observation: larger raises more
        alarms. `stat_size` >= 1, size of both samples: larger sees smaller changes, later; it must be large enough
        that some p-value is <= alpha, 2 / binomial(2 stat_size, stat_size) being the least (6 at the default level).
        `window_size` >= 2 stat_size, because the older sample is drawn without replacement: larger remembers longer.
        `seed` in 0 ... 2**63 - 1 of these draws. One test per observation: by far the slowest; on errors it sees, at
        the defaults, only samples whose rates differ by at least 14 / 30.

        `ddm`: `drift_threshold` > 0, in standard deviations: larger raises fewer and later alarms. `warm_start` >= 1,
        observations before the first alarm; where none of them is an error, the least rate is 0 and the next error
        an alarm: take it well above 1 / error rate. The delay grows with the observations since the last alarm.

        `eddm`: `beta` in (0, 1), a share: larger raises more alarms. `warm_start` >= 1, errors before the first
        alarm. The delay grows with the observations since the last alarm.

        `fhddm`: `sliding_window_size` >= 1 observations: larger sees smaller changes, later. `confidence_level` in
        (0, 1): larger raises more alarms. `short_window_size`, an integer of at most sliding_window_size or None, is
        the second window of the stacking variant: sudden changes are seen earlier. A window of n observations sees
        falls above sqrt(ln(1 / confidence_level) / 2n), so n must exceed ln(1 / confidence_level) / 2.

        `hddm_a`, `hddm_w`: `drift_confidence` in (0, 1): larger raises more alarms. `two_sided_test`: also alarms
        when the error falls. `hddm_w` only: `lambda_val` in (0, 1], the weight of the newest value: larger sees
        sudden changes earlier and only larger ones; rises above about
        sqrt(lambda_val / (2 - lambda_val) ln(1 / drift_confidence)) are seen, so lambda_val must be less than
        2 / (1 + ln(1 / drift_confidence)).

        `warning_threshold`, `alpha` of eddm and `warning_confidence` decide River's warnings, which raise no alarm.
        Their ranges are those of the parameter of the alarm, and a warning may not come after the alarm: at most
        `drift_threshold`, at least `beta` or `drift_confidence`. Left out they follow where the default would not fit.
    seed
        Valid range as of `kswin.seed`: seed of a detector that draws (kswin), where `parameters` has none. With
        neither, a seed is drawn from the operating system once, so that a restored detector still continues as if
        never stopped.
    one_sided
        Whether only a rise of the values alarms, where `parameters` do not say otherwise: adwin and kswin take a fall
        for no alarm, page_hinkley has the mode `up`, the others are one-sided by default.

    Raises
    ------
    InvalidParameterError
        The detector or one of the parameters is unknown or out of its range, or the parameters together can raise no
        alarm. `parameter` is then `detector`, `detector_params of <name>` or `<name>.<parameter>`.

    Source: adwin: Bifet and Gavalda, Learning from Time-Changing Data with Adaptive Windowing, SDM 2007. page_hinkley:
    Page, Continuous Inspection Schemes, Biometrika 41, 1954. kswin: Raab, Heusinger and Schleif, Reactive Soft
    Prototype Computing for Concept Drift Streams, Neurocomputing 416, 2020. ddm: Gama, Medas, Castillo and Rodrigues,
    Learning with Drift Detection, SBIA 2004. eddm: Baena-Garcia et al., Early Drift Detection Method, IWKDDS 2006.
    fhddm: Pesaranghader and Viktor, Fast Hoeffding Drift Detection Method for Evolving Data Streams, ECML PKDD 2016.
    hddm_a, hddm_w: Frias-Blanco et al., Online and Non-Parametric Drift Detection Methods Based on Hoeffding's Bounds,
    IEEE TKDE 27(3), 2015. The classes are River's. Deviations: fhddm is told 1 - value, because River's raises its
    alarm when the values fall; kswin takes the test's p-value, not the paper's bound, and no distance up to 0.1.

    Examples
    --------
    >>> detector = make_detector("fhddm", {"sliding_window_size": 50})
    >>> errors = [0] * 200 + [1] * 200
    >>> alarms = []
    >>> for n, error in enumerate(errors, start=1):
    ...     detector.update(error)
    ...     if detector.drift_detected:
    ...         alarms.append(n)
    >>> alarms
    [219]
    """
    detector, checks = _DETECTORS[check_choice("detector", name, DETECTOR_NAMES)]
    checked: Parameters = {}
    for parameter, value in (parameters or {}).items():
        if parameter not in checks:
            raise InvalidParameterError(
                f"detector_params of {name}", "parameters out of " + ", ".join(sorted(checks)), parameter
            )
        checked[parameter] = checks[parameter](f"{name}.{parameter}", value)
    if "seed" in checks and "seed" not in checked:
        # A seed of None would be drawn anew after every alarm: two runs from one snapshot would differ.
        checked["seed"] = secrets.randbits(63) if seed is None else checks["seed"]("seed", seed)
    _check_together(name, detector, checked)
    if one_sided and name == "page_hinkley":
        checked.setdefault("mode", "up")
    return (_RISING.get(name, detector) if one_sided else detector)(**checked)


@cache
def _defaults_of(detector: type) -> dict[str, Any]:
    return {key: parameter.default for key, parameter in inspect.signature(detector).parameters.items()}


def _check_together(name: str, detector: type, checked: Parameters) -> None:
    """Check parameters together; move an unset warning level to the alarm's."""
    given = {**_defaults_of(detector), **checked}

    def require(valid: bool, parameter: str, expected: str) -> None:
        if not valid:
            raise InvalidParameterError(f"{name}.{parameter}", expected, given[parameter])

    if name in _WARNINGS:
        warning, alarm, relation = _WARNINGS[name]
        in_order = given[warning] <= given[alarm] if relation == "<=" else given[warning] >= given[alarm]
        if not in_order and warning not in checked:
            checked[warning] = given[alarm]
        else:
            require(in_order, warning, f"a number {relation} {name}.{alarm}, which is {given[alarm]:g}")
    if name == "kswin":
        size, window, alpha = given["stat_size"], given["window_size"], given["alpha"]
        half = window // 2
        require(size <= half, "stat_size", f"an integer <= {half}, half of kswin.window_size, which is {window}")
        log_least = math.log(2.0) + 2.0 * math.lgamma(size + 1) - math.lgamma(2 * size + 1)
        require(
            log_least <= math.log(alpha) + 1e-9,
            "stat_size",
            f"larger: no p-value of it is below {math.exp(log_least):.2g}, and kswin.alpha is {alpha:g}",
        )
    if name == "fhddm":
        window, short, confidence = (given[p] for p in ("sliding_window_size", "short_window_size", "confidence_level"))
        least = -math.log(confidence) / 2.0
        for parameter in ("sliding_window_size", "short_window_size"):
            require(
                given[parameter] is None or given[parameter] > least,
                parameter,
                f"an integer > {least:.4g}: smaller windows see no fall at fhddm.confidence_level {confidence:g}",
            )
        require(
            short is None or short <= window,
            "short_window_size",
            f"an integer <= fhddm.sliding_window_size, which is {window}",
        )
    if name == "hddm_w":
        confidence = given["drift_confidence"]
        limit = 2.0 / (1.0 - math.log(confidence))
        require(
            given["lambda_val"] < limit,
            "lambda_val",
            f"a number < {limit:.4g}: larger weights see no rise at hddm_w.drift_confidence {confidence:g}",
        )
