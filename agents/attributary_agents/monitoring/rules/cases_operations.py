"""Unit tests of the alerts on operations."""

from __future__ import annotations

from .cases import Case, Fires, selector, series

_JOB = {"job": "attributary"}
_CREDIT = {"model_id": "credit"}
_TOPIC = "attributary.observations.v1"
_PARTITION = {"topic": _TOPIC, "partition": "3"}
_STEP, _LIMIT = series("worker_step_seconds"), series("worker_step_limit_seconds")
_CONSUMED = series("records_consumed_total", **_PARTITION)
_FAILED = series("dead_letters_total", **_PARTITION, reason="model_failed")
_LAG = series("consumer_lag_records", **_PARTITION)
_OBSERVATIONS = series("model_observations_total", **_CREDIT)

_WORKER_CASES = [
    Case(
        "the last worker goes",
        {_STEP: "0x9 stale"},
        {
            ("10m", "Down"): [],
            ("11m", "Down"): [
                Fires(
                    {},
                    "No worker answers",
                    "No worker of Attributary was scraped: nothing is explained, and no other alert can tell.",
                )
            ],
        },
    ),
    Case(
        "one of two workers goes, and another job's target",
        {
            selector("up", job="attributary", instance="a"): "1x9 0x20",
            selector("up", job="attributary", instance="b"): "1x30",
            selector("up", job="node", instance="a"): "0x30",
            _STEP: "0x9 stale",
            series("worker_step_seconds", "b"): "0x30",
        },
        {
            ("10m", "WorkerDown"): [],
            ("11m", "WorkerDown"): [
                Fires(
                    {**_JOB, "instance": "a"},
                    "Worker a does not answer",
                    "Its /metrics cannot be scraped. Other workers of its group take its partitions over.",
                )
            ],
            ("20m", "Down"): [],
        },
    ),
    Case(
        "a step does not end",
        {_STEP: "0x9 30+60x20", _LIMIT: "30x30"},
        {
            ("11m", "WorkerStuck"): [],
            ("12m", "WorkerStuck"): [
                Fires(
                    {**_JOB, "instance": "a"},
                    "Worker a is stuck in one step",
                    "One observation, deployment or checkpoint has lasted for 2m 30s, longer than 30s. "
                    "Its log says which, with the stack.",
                )
            ],
        },
    ),
    Case(
        "two workers that are well",
        {
            **{selector("up", job="attributary", instance=instance): "1x60" for instance in "ab"},
            **{series("series_dropped_models", instance): "0x60" for instance in "ab"},
            **{series("models_refused", instance): "0x60" for instance in "ab"},
        },
        {("50m", name): [] for name in ("WorkerDown", "SeriesDropped", "ModelsRefused")},
    ),
    Case("steps within the limit", {_STEP: "25x30", _LIMIT: "30x30"}, {("20m", "WorkerStuck"): []}),
    Case(
        "models without series, and refused ones, over two workers",
        {
            series("series_dropped_models", "a"): "0x9 3x30",
            series("series_dropped_models", "b"): "0x9 2x30",
            series("models_refused", "a"): "0x9 1x30",
            series("models_refused", "b"): "0x40",
        },
        {
            ("19m", "SeriesDropped"): [],
            ("10m", "ModelsRefused"): [],
            ("20m", "SeriesDropped"): [
                Fires(
                    {**_JOB},
                    "5 model(s) have no series",
                    "Models beyond metrics.max_models or metrics.max_series of a worker are explained, and not "
                    "exported.",
                )
            ],
            ("11m", "ModelsRefused"): [
                Fires(
                    {**_JOB},
                    "1 model(s) are refused: their stored state is damaged",
                    "Their observations go to the dead letters until the state is reset or imported.",
                )
            ],
        },
    ),
]

_RECORD_CASES = [
    Case(
        "a model fails on one record in fifty",
        {
            _CONSUMED: "0+100x50",
            _FAILED: "500x9 502+2x40",
            series("dead_letters_total", **_PARTITION, reason="missing_label"): "0+90x50",
        },
        {
            ("15m", "DeadLetters"): [],
            ("30m", "DeadLetters"): [
                Fires(
                    {**_JOB, "topic": _TOPIC, "reason": "model_failed"},
                    f"Records of {_TOPIC} cannot be used: model_failed",
                    "2% of the records in 10m became dead letters for this reason, more than 1%; n = 1k records. "
                    "Each says in its headers what is wrong with it.",
                )
            ],
        },
    ),
    Case(
        "a single deployment that cannot be used",
        {
            series("records_consumed_total", topic="attributary.models.v1", partition="0"): "4x9 5x30",
            series(
                "dead_letters_total", topic="attributary.models.v1", partition="0", reason="not_allowed"
            ): "0x9 1x30",
        },
        {
            ("10m", "DeadLetters"): [],
            ("11m", "DeadLetters"): [
                Fires(
                    {**_JOB, "topic": "attributary.models.v1", "reason": "not_allowed"},
                    "Records of attributary.models.v1 cannot be used: not_allowed",
                    "100% of the records in 10m became dead letters for this reason, more than 1%; n = 1 records. "
                    "Each says in its headers what is wrong with it.",
                )
            ],
            ("28m", "DeadLetters"): [],
        },
    ),
    Case(
        "one record in two hundred",
        {_CONSUMED: "0+400x50", _FAILED: "0+2x50"},
        {("30m", "DeadLetters"): []},
    ),
    Case(
        "the lag grows",
        {_LAG: "0x9 100+100x60"},
        {
            ("19m", "LagGrowing"): [],
            ("30m", "LagGrowing"): [
                Fires(
                    {**_JOB, **_PARTITION},
                    f"The workers do not keep up with {_TOPIC}[3]",
                    "2.1k records wait, 1000 or more, and they became more over 15m.",
                )
            ],
        },
    ),
    Case(
        "a lag that shrinks, as after a restart, and one that is small",
        {_LAG: "90000-1000x60", series("consumer_lag_records", topic=_TOPIC, partition="4"): "0+16x60"},
        {("60m", "LagGrowing"): []},
    ),
    Case(
        "nothing is stored any more",
        {series("checkpoint_pending_seconds", **_PARTITION): "5x9 61+60x30"},
        {
            ("19m", "CheckpointStale"): [],
            ("20m", "CheckpointStale"): [
                Fires(
                    {**_JOB, **_PARTITION},
                    f"{_TOPIC}[3] is not stored",
                    "The oldest observation without a checkpoint was handled 11m 1s ago, more than 600 s: a crash "
                    "repeats all since.",
                )
            ],
        },
    ),
    Case(
        "nothing is to be stored, or soon will be",
        {
            series("checkpoint_pending_seconds", **_PARTITION): "0x60",
            series("checkpoint_pending_seconds", topic=_TOPIC, partition="4"): "120x60",
        },
        {("50m", "CheckpointStale"): []},
    ),
]

_MODEL_CASES = [
    Case(
        "a model's observations stop",
        {_OBSERVATIONS: "0+100x30 3000x40"},
        {
            ("45m", "ObservationsStopped"): [],
            ("46m", "ObservationsStopped"): [
                Fires({**_JOB, **_CREDIT}, "credit gets no observations", "None in 15m, after 3k."),
            ],
        },
    ),
    Case(
        "observations that come seldom, and a model that has just moved here",
        {
            _OBSERVATIONS: "0x9 1x9 2x9 3x9 4x9 5x9",
            series("model_observations_total", model_id="churn"): "_x40 700x10",
        },
        {("45m", "ObservationsStopped"): []},
    ),
    Case(
        "a model's partition is nobody's",
        {_OBSERVATIONS: "0+100x30 stale"},
        {
            ("35m", "ModelGone"): [],
            ("36m", "ModelGone"): [
                Fires(
                    {**_JOB, **_CREDIT},
                    "credit is on no worker",
                    "It was within 1h, with 3k observations. Nobody owns its partition, or its state is still being "
                    "read.",
                ),
            ],
            ("92m", "ModelGone"): [],
        },
    ),
    Case(
        "a model that is there, and one that has just come",
        {
            _OBSERVATIONS: "0+100x60",
            series("model_observations_total", model_id="churn"): "_x40 700x20",
        },
        {("50m", "ModelGone"): []},
    ),
    Case(
        "a state grows",
        {series("model_state_bytes", **_CREDIT): "99000000x9 150000000x30"},
        {
            ("20m", "StateTooLarge"): [],
            ("25m", "StateTooLarge"): [
                Fires(
                    {**_JOB, **_CREDIT},
                    "The state of credit is large",
                    "It is 150MB, above 100 MB: checkpoints and restarts take long.",
                )
            ],
        },
    ),
    Case(
        "states of a usual size",
        {series("model_state_bytes", **_CREDIT): "99000000x60"},
        {("50m", "StateTooLarge"): []},
    ),
    Case(
        "a budget that is too small",
        {
            series("explain_every_observations", **_CREDIT): "8x9 64x30",
            series("explain_budget_ratio", **_CREDIT): "0.1x40",
            series("explain_share_ratio", **_CREDIT): "0.3x40",
        },
        {
            ("19m", "BudgetExhausted"): [],
            ("20m", "BudgetExhausted"): [
                Fires(
                    {**_JOB, **_CREDIT},
                    "credit is explained too seldom to keep within its budget",
                    "One in 64 observations is explained, 64 or more; explaining took 30% of the time, and the budget "
                    "is 10%.",
                )
            ],
        },
    ),
    Case(
        "one in sixty-four as configured, without a budget, and a budget that suffices",
        {
            series("explain_every_observations", **_CREDIT): "64x60",
            series("explain_share_ratio", **_CREDIT): "0.3x60",
            series("explain_every_observations", model_id="churn"): "32x60",
            series("explain_budget_ratio", model_id="churn"): "0.1x60",
        },
        {("50m", "BudgetExhausted"): []},
    ),
    Case(
        "a version that cannot take over",
        {
            series("model_versions_total", **_CREDIT, outcome="refused"): "1x9 2x40",
            series("model_versions_total", **_CREDIT, outcome="explained"): "0+1x50",
        },
        {
            ("9m", "VersionRefused"): [],
            ("10m", "VersionRefused"): [
                Fires(
                    {**_JOB, **_CREDIT, "outcome": "refused"},
                    "A new version of credit cannot take over",
                    "It was deployed and could not be loaded or explained when it was due: the last one goes on.",
                )
            ],
            ("30m", "VersionRefused"): [],
        },
    ),
]

OPERATIONS_CASES = [*_WORKER_CASES, *_RECORD_CASES, *_MODEL_CASES]
