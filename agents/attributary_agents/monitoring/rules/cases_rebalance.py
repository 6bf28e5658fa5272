"""A partition moves from worker a to worker b: no alert by that alone, and nothing counted twice."""

from __future__ import annotations

from .cases import Case, Fires, selector, series
from .recorded import NAMES, labels_of, rate, recorded

_PARTITION = {"topic": "attributary.observations.v1", "partition": "0"}
_UNREADABLE = {**_PARTITION, "reason": "invalid_json"}
_CREDIT = {"model_id": "credit"}
_EXPLAINED = {**_CREDIT, "explainer": "pfi"}
_FEATURE = {**_EXPLAINED, "feature": "salary"}
_JOB = {"job": "attributary"}


def _moving(a: str, b: str, name: str, labels: dict[str, str]) -> dict[str, str]:
    return {series(name, "a", **labels): a, series(name, "b", **labels): b}


def _counters(a: str, b: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, labels in (
        ("records_consumed_total", _PARTITION),
        ("model_observations_total", _CREDIT),
    ):
        found |= _moving(a, b, name, labels)
    return found


def _constant(value: str, name: str, labels: dict[str, str]) -> dict[str, str]:
    return _moving(f"{value}x39 stale", f"_x42 {value}x60", name, labels)


_STEADY = {
    **_constant("7", "model_changes_total", {**_CREDIT, "route": "detector"}),
    **_constant("9", "model_data_changes_total", _CREDIT),
    **_constant("3", "model_versions_total", {**_CREDIT, "outcome": "refused"}),
    **_constant("900", "dead_letters_total", {**_PARTITION, "reason": "model_failed"}),
    **_constant("900", "dead_letters_total", {**_PARTITION, "reason": "missing_label"}),
    **_constant("0.5", "feature_importance_share_ratio", _FEATURE),
    **_constant("9000", "explainer_observations", _EXPLAINED),
    series("worker_step_seconds", "a"): "0x120",
    series("worker_step_seconds", "b"): "0x120",
    series("worker_step_limit_seconds", "a"): "30x120",
    series("worker_step_limit_seconds", "b"): "30x120",
}
_QUIET = (
    "ChangeDetected",
    "DataChanged",
    "ChangeStorm",
    "VersionRefused",
    "DeadLetters",
    "LabelsMissing",
    "FeatureCollapsed",
    "FeatureSurged",
    "ObservationsStopped",
    "ModelGone",
    "Down",
)


def _none(*moments: str) -> dict[tuple[str, str], list[object]]:
    return {(moment, name): [] for moment in moments for name in _QUIET}


_OBSERVED = recorded("model_observations_total")
_RATE = rate("model_observations_total")
_OF_MODEL = selector(_OBSERVED, **_JOB, **_CREDIT)
_RATE_OF_MODEL = selector(_RATE, **_JOB, **_CREDIT)

REBALANCE_CASES = [
    Case(
        "a clean move, with a gap of two scrapes: counters go on on the other worker",
        {**_STEADY, **_counters("50000+100x39 stale", "_x42 54200+100x60")},
        _none("39m", "41m", "44m", "50m", "62m"),  # type: ignore[arg-type]
        {
            ("39m", _OBSERVED): {_OF_MODEL: 53900},
            ("41m", _OBSERVED): {},
            ("45m", _OBSERVED): {_OF_MODEL: 54500},
            ("39m", _RATE): {_RATE_OF_MODEL: 100 / 60},
            ("60m", _RATE): {_RATE_OF_MODEL: 100 / 60},
        },
    ),
    Case(
        "both workers show the partition for two scrapes: it counts once",
        {**_STEADY, **_counters("50000+100x42 stale", "_x40 54000+100x60")},
        _none("41m", "42m", "50m"),  # type: ignore[arg-type]
        {
            ("41m", _OBSERVED): {_OF_MODEL: 54100},
            ("42m", _OBSERVED): {_OF_MODEL: 54200},
            ("42m", f"sum({recorded('records_consumed_total')})"): {"{}": 54200},
        },
    ),
    Case(
        "a change, and then a move with a gap of two scrapes: it is told without an interruption",
        _moving("0x29 1x4 stale", "_x37 1x60", "model_changes_total", {**_CREDIT, "route": "detector"}),
        {
            (f"{minute}m", "ChangeDetected"): [
                Fires(
                    {**_JOB, **_CREDIT, "route": "detector"},
                    "credit has changed",
                    "1 change(s) in 10m, raised by: detector. Which features it relies on more or less stands in the "
                    "change event.",
                    {"explanation": "attributary changes credit"},
                )
            ]
            for minute in range(30, 40)
        }
        | {("45m", "ChangeDetected"): []},
    ),
    Case(
        "every recorded series on both workers at once: each has the value of one",
        {key: "7x10" for name in NAMES for key in _moving("", "", name, dict.fromkeys(labels_of(name), "x"))},
        values={("10m", 'count({__name__=~".+:max"} == 7)'): {"{}": len(NAMES)}},
    ),
    Case(
        "a is killed: b repeats from the last checkpoint, 500 records back",
        {
            **_STEADY,
            **_moving("9000+0.5x39 stale", "_x42 9015+0.5x60", "dead_letters_total", _UNREADABLE),
            **_counters("50000+100x39 stale", "_x42 53700+100x60"),
        },
        _none("43m", "44m", "50m", "62m"),  # type: ignore[arg-type]
        {
            ("43m", _OBSERVED): {_OF_MODEL: 53800},
            ("60m", _RATE): {_RATE_OF_MODEL: 100 / 60},
            ("44m", f"{_RATE} < bool 100"): {selector("", **_JOB, **_CREDIT): 1},
            ("44m", f'{rate("dead_letters_total")}{{reason="invalid_json"}} < bool 1'): {
                selector("", **_JOB, **_UNREADABLE): 1
            },
            # What increase() would make of it, and the reason why no rule has it: the restart counts 53 700 times.
            ("50m", f"increase({_OBSERVED}[15m]) > bool 50000"): {selector("", **_JOB, **_CREDIT): 1},
            ("50m", f"{_OBSERVED} - min_over_time({_OBSERVED}[9m])"): {selector("", **_JOB, **_CREDIT): 800},
        },
    ),
]
