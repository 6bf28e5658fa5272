"""Unit tests of the alerts on change and quality."""

from __future__ import annotations

from .cases import Case, Fires, series

_JOB = {"job": "attributary"}
_CREDIT = {"model_id": "credit"}
_COMMAND = {"explanation": "attributary changes credit"}
_CHANGES = series("model_changes_total", **_CREDIT, route="detector")
_LAST = series("model_last_change_timestamp_seconds", **_CREDIT)


def _changed(n: int, **route: str) -> list[Fires]:
    by = "".join(f", raised by: {name}" for name in route.values())
    return [
        Fires(
            {**_JOB, **_CREDIT, **route},
            "credit has changed",
            f"{n} change(s) in 10m{by}. Which features it relies on more or less stands in the change event.",
            _COMMAND,
        )
    ]


CHANGE_CASES = [
    Case(
        "one change: it is told at once, for ten minutes and two more",
        {
            _CHANGES: "0x9 1x60",
            series("model_changes_total", **_CREDIT, route="version"): "0x70",
            _LAST: "_x10 590x60",
        },
        {
            ("9m", "ChangeDetected"): [],
            ("10m", "ChangeDetected"): _changed(1, route="detector"),
            ("18m", "ChangeDetected"): _changed(1, route="detector"),
            ("24m", "ChangeDetected"): [],
        },
    ),
    Case(
        "a change by a clock that is ahead: it ends as the alert that it began as",
        {_CHANGES: "0x9 1x60", _LAST: "_x10 630x60"},
        {
            ("10m", "ChangeDetected"): _changed(1, route="detector"),
            **{(f"{minute}m", "ChangeDetected"): _changed(1, route="detector") for minute in (19, 20, 21)},
            ("24m", "ChangeDetected"): [],
        },
    ),
    Case(
        "no change: a model with a history, a restart, a reset",
        {
            _CHANGES: "3x30 2x30 3x1 3x30",  # after a crash it repeats one, which is told again below
            series("model_changes_total", model_id="churn", route="detector"): "7x30 0x60",
            _LAST: "-9000x90",
        },
        {("20m", "ChangeDetected"): [], ("45m", "ChangeDetected"): []},
    ),
    Case(
        "a change that a crash repeats is told again, and no older one with it",
        {_CHANGES: "3x30 2x30 3x30"},
        {("62m", "ChangeDetected"): _changed(1, route="detector")},
    ),
    Case(
        "a change after a reset of the model",
        {_CHANGES: "5x30 0x3 1x30"},
        {("34m", "ChangeDetected"): [], ("35m", "ChangeDetected"): _changed(1, route="detector")},
    ),
    Case(
        "the first scrape of a model comes behind its first change: the time of the change tells",
        {_CHANGES: "_x30 1x60", _LAST: "_x30 1790x60"},
        {
            ("29m", "ChangeDetected"): [],
            ("30m", "ChangeDetected"): _changed(1),
            ("34m", "ChangeDetected"): _changed(1),
            ("38m", "ChangeDetected"): [],
        },
    ),
    Case(
        "times of observations that nobody can believe",
        {
            _CHANGES: "2x60",
            _LAST: "1700000000000x60",
            series("model_changes_total", model_id="churn", route="detector"): "2x60",
            series("model_last_change_timestamp_seconds", model_id="churn"): "-1x60",
        },
        {("30m", "ChangeDetected"): []},
    ),
    Case(
        "an alarm that the data explain",
        {series("model_data_changes_total", **_CREDIT): "2x9 3x40"},
        {
            ("9m", "DataChanged"): [],
            ("10m", "DataChanged"): [
                Fires(
                    {**_JOB, **_CREDIT},
                    "credit relies on other features because its data has changed",
                    "1 alarm(s) in 10m explained by the data: the model predicts as before.",
                    _COMMAND,
                )
            ],
            ("30m", "DataChanged"): [],
        },
    ),
    Case(
        "a storm of changes, by whatever route",
        {
            _CHANGES: "10x10 11+1x3 14x90",
            series("model_changes_total", **_CREDIT, route="discrepancy"): "4x10 5x80",
            series("model_changes_total", **_CREDIT, route="version"): "0x90",
        },
        {
            ("12m", "ChangeStorm"): [],
            ("20m", "ChangeStorm"): [
                Fires(
                    {**_JOB, **_CREDIT},
                    "credit does not come to rest",
                    "5 changes in 1h, 5 or more.",
                    _COMMAND,
                )
            ],
            ("85m", "ChangeStorm"): [],
        },
    ),
    Case(
        "many new versions are no storm, nor are many changes of old",
        {_CHANGES: "100x60", series("model_changes_total", **_CREDIT, route="version"): "0+1x60"},
        {("30m", "ChangeStorm"): []},
    ),
    Case(
        "the model predicts differently from its reference",
        {
            series("model_discrepancy", **_CREDIT): "0.2x9 0.45x40",
            series("model_discrepancy_threshold", **_CREDIT): "0.3x50",
            series("model_discrepancy_observations", **_CREDIT): "100x50",
        },
        {
            ("14m", "DiscrepancyHigh"): [],
            ("15m", "DiscrepancyHigh"): [
                Fires(
                    {**_JOB, **_CREDIT},
                    "credit predicts differently from its reference",
                    "The discrepancy is 0.45, above 0.3; n = 100 observations.",
                )
            ],
        },
    ),
    Case(
        "a discrepancy of few observations, and one within its threshold",
        {
            series("model_discrepancy", **_CREDIT): "0.9x50",
            series("model_discrepancy_threshold", **_CREDIT): "0.3x50",
            series("model_discrepancy_observations", **_CREDIT): "99x50",
            series("model_discrepancy", model_id="churn"): "0.3x50",
            series("model_discrepancy_threshold", model_id="churn"): "0.3x50",
            series("model_discrepancy_observations", model_id="churn"): "5000x50",
        },
        {("30m", "DiscrepancyHigh"): []},
    ),
]

_LETTERS = {"topic": "attributary.observations.v1", "partition": "0"}
_UNLABELLED = series("dead_letters_total", **_LETTERS, reason="missing_label")
_CONSUMED = series("records_consumed_total", **_LETTERS)

QUALITY_CASES = [
    Case(
        "worse than a prediction that knows no feature",
        {
            series("model_loss", **_CREDIT): "0.3x9 0.71x40",
            series("model_baseline_loss", **_CREDIT): "0.6x50",
            series("model_observations_total", **_CREDIT): "1000x50",
        },
        {
            ("24m", "WorseThanBaseline"): [],
            ("25m", "WorseThanBaseline"): [
                Fires(
                    {**_JOB, **_CREDIT},
                    "credit is worse than a prediction that knows no feature",
                    "Its loss is 0.71, above 0.6; n = 1k observations. Its importances say little now.",
                )
            ],
        },
    ),
    Case(
        "better than the baseline, or only just begun",
        {
            series("model_loss", **_CREDIT): "0.6x50",
            series("model_baseline_loss", **_CREDIT): "0.6x50",
            series("model_observations_total", **_CREDIT): "5000x50",
            series("model_loss", model_id="churn"): "0.9x50",
            series("model_baseline_loss", model_id="churn"): "0.6x50",
            series("model_observations_total", model_id="churn"): "999x50",
        },
        {("40m", "WorseThanBaseline"): []},
    ),
    Case(
        "six observations in a hundred have no label",
        {_CONSUMED: "0+100x50", _UNLABELLED: "0x19 6+6x40"},
        {
            ("32m", "LabelsMissing"): [],
            ("40m", "LabelsMissing"): [
                Fires(
                    {**_JOB, "topic": "attributary.observations.v1"},
                    "Observations come without labels on attributary.observations.v1",
                    "6% of the records in 10m have no label, more than 5%; n = 1k records. "
                    "They are dead letters with the reason missing_label.",
                )
            ],
        },
    ),
    Case(
        "four in a hundred have none; many had none long ago; nothing comes",
        {
            _CONSUMED: "0+100x50",
            _UNLABELLED: "7000+4x50",
            series("records_consumed_total", topic="quiet", partition="0"): "100x50",
            series("dead_letters_total", topic="quiet", partition="0", reason="missing_label"): "100x50",
        },
        {("30m", "LabelsMissing"): []},
    ),
]
