"""Defines the alerts about the operation of the workers."""

from __future__ import annotations

import json

from .alerts import MODEL_DASHBOARD, Alert, Severity, ask, ask_rise, number, percent
from .options import RuleOptions
from .recorded import recorded, rise

_WHERE = "{{ $labels.topic }}[{{ $labels.partition }}]"
_WORKER = "{{ $labels.instance }}{{ with $labels.worker }} #{{ . }}{{ end }}"
"""The worker's address, and its number where one address serves several: `attributary run --workers`."""

_OF_TEMPLATE = "last_over_time(attributary_model_template[1d])"
"""The models of templates: they come and go as their observations do. A day, for a series goes before the alert."""


def operations_alerts(options: RuleOptions) -> list[Alert]:
    """Return the alerts of the area `operations`."""
    return [*_workers(options), *_records(options), *_models(options)]


def _workers(options: RuleOptions) -> list[Alert]:
    workers = ", ".join((*options.worker_labels, "worker"))
    return [
        _alert(
            "Down",
            "critical",
            "absent(attributary_worker_step_seconds)",
            "No worker answers",
            "No worker of Attributary was scraped: nothing is explained, and no other alert can tell.",
            wait="1m",
            keep=None,
        ),
        _alert(
            "WorkerDown",
            "warning",
            f"up{{job=~{json.dumps(options.job, ensure_ascii=False)}}} == 0\nor attributary_worker_up == 0",
            f"Worker {_WORKER} does not answer",
            "Its /metrics cannot be scraped. Other workers of its group take its partitions over, or its supervisor "
            "starts it again.",
            wait="1m",
            keep=None,
        ),
        _alert(
            "WorkerStuck",
            "critical",
            "attributary_worker_step_seconds > attributary_worker_step_limit_seconds",
            f"Worker {_WORKER} is stuck in one step",
            "One observation, deployment or checkpoint has lasted for {{ $value | humanizeDuration }}, longer than "
            '{{ with printf "attributary_worker_step_limit_seconds{instance=%q}" $labels.instance | query }}'
            "{{ . | first | value | humanizeDuration }}{{ end }}. Its log says which, with the stack.",
            wait="1m",
            keep=None,
        ),
        _alert(
            "BrokerAway",
            "warning",
            "attributary_broker_up == 0",
            f"No broker answers worker {_WORKER}",
            "It waits and goes on by itself; what it has handled and not stored stays. The last answer was "
            '{{ with printf "time() - attributary_broker_last_answer_timestamp_seconds{instance=%q, worker=%q}" '
            "$labels.instance $labels.worker | query }}{{ . | first | value | humanizeDuration }} ago"
            "{{ else }}before it started{{ end }}.",
            wait="1m",
            keep=None,
        ),
        _alert(
            "WritesUnacknowledged",
            "warning",
            "attributary_write_unacknowledged_seconds > 30",
            f"Brokers do not acknowledge what worker {_WORKER} writes",
            "Brokers answer, and the oldest write has waited for {{ $value | humanizeDuration }}: probably a partition "
            "has no leader, or fewer replicas in sync than min.insync.replicas. The worker waits and goes on by "
            "itself; nothing is stored or published meanwhile.",
            wait="1m",
            keep=None,
        ),
        _alert(
            "ModelRegistryAway",
            "warning",
            "attributary_mlflow_up == 0",
            f"MLflow's registry does not answer worker {_WORKER}",
            "Models go on with the versions that they have; a moved alias is not seen. The last answer was "
            '{{ with printf "time() - attributary_mlflow_last_answer_timestamp_seconds{instance=%q, worker=%q}" '
            "$labels.instance $labels.worker | query }}{{ . | first | value | humanizeDuration }} ago"
            "{{ else }}before it started{{ end }}.",
            wait="30m",
            keep=None,
        ),
        _alert(
            "ModelAliasMissing",
            "warning",
            "attributary_mlflow_version_missing == 1",
            "MLflow's registry has not what {{ $labels.model_id }} is configured with",
            "The alias, the version or the registered model is gone; the model goes on with the version that it has. "
            "The worker's log says what the registry has instead.",
            wait="10m",
            keep=None,
        ),
        _alert(
            "ModelVersionRetried",
            "warning",
            "attributary_model_version_retried == 1",
            "A new version of {{ $labels.model_id }} cannot be had or built",
            "It is tried again, and the model goes on with the version that it has. The worker's log says why.",
            wait="10m",
        ),
        _alert(
            "SeriesDropped",
            "warning",
            f"sum without ({workers}) (attributary_series_dropped_models) > 0",
            "{{ $value }} model(s) have no series",
            "Models beyond metrics.max_models or metrics.max_series of a worker are explained, and not exported.",
            wait="10m",
        ),
        _alert(
            "ModelsRefused",
            "critical",
            f"sum without ({workers}) (attributary_models_refused) > 0",
            "{{ $value }} model(s) are refused: their stored state is damaged",
            "Their observations go to the dead letters until the state is reset or imported.",
            wait="1m",
        ),
    ]


def _records(options: RuleOptions) -> list[Alert]:
    at = options.thresholds
    letters = f'{recorded("dead_letters_total")}{{reason!~"missing_label|prediction_not_finite"}}'
    window = at.dead_letters_window
    return [
        _alert(
            "DeadLetters",
            "warning",
            f"sum without (partition) ({rise(letters, window)})\n"
            f"/ ignoring (reason) group_left ()\n"
            f"sum without (partition) ({rise(recorded('records_consumed_total'), window)})\n"
            f"> {number(at.dead_letters_ratio)}",
            "Records of {{ $labels.topic }} cannot be used: {{ $labels.reason }}",
            f"{{{{ $value | humanizePercentage }}}} of the records in {window} became dead letters for this reason, "
            f"more than {percent(at.dead_letters_ratio)}; n = "
            f"{ask_rise('records_consumed_total', window, 'topic')} records. "
            "Each says in its headers what is wrong with it.",
            wait="1m",
        ),
        _alert(
            "LagGrowing",
            "warning",
            f"{recorded('consumer_lag_records')} >= {number(at.lag_records)}\n"
            f"and deriv({recorded('consumer_lag_records')}[{at.lag_window}]) > 0",
            f"The workers do not keep up with {_WHERE}",
            f"{{{{ $value | humanize }}}} records wait, {number(at.lag_records)} or more, and they became more over "
            f"{at.lag_window}.",
            wait="10m",
        ),
        _alert(
            "SourceLagGrowing",
            "warning",
            f"{recorded('source_lag_records')} >= {number(at.lag_records)}\n"
            f"and deriv({recorded('source_lag_records')}[{at.lag_window}]) > 0",
            f"The mapper does not keep up with {_WHERE} of {{{{ $labels.source }}}}",
            f"{{{{ $value | humanize }}}} records are not mapped, {number(at.lag_records)} or more, and they became "
            f"more over {at.lag_window}.",
            wait="10m",
        ),
        _alert(
            "EndpointAway",
            "warning",
            f"{recorded('endpoint_breaker_open')} == 1",
            "The endpoint of {{ $labels.model_id }} does not answer",
            "Its requests fail with all their retries, so that only single ones try it. Observations of the model "
            "wait, and those behind them on their partitions; none is lost. They have waited for "
            f"{ask('endpoint_waiting_seconds', 'model_id', form='humanizeDuration')}.",
            wait="1m",
        ),
        _alert(
            "TransactionOpen",
            "warning",
            f"{recorded('transaction_open_seconds')} > {number(at.transaction_seconds)}",
            f"An open transaction holds up {_WHERE}",
            "A producer has not ended its transaction for {{ $value | humanizeDuration }}, more than "
            f"{number(at.transaction_seconds)} s: nothing behind it is read until the broker aborts it.",
        ),
        _alert(
            "CheckpointStale",
            "critical",
            f"{recorded('checkpoint_pending_seconds')} > {number(at.checkpoint_seconds)}",
            f"{_WHERE} is not stored",
            "The oldest observation without a checkpoint was handled {{ $value | humanizeDuration }} ago, more than "
            f"{number(at.checkpoint_seconds)} s: a crash repeats all since.",
            wait="1m",
        ),
    ]


def _models(options: RuleOptions) -> list[Alert]:
    at = options.thresholds
    observations = recorded("model_observations_total")
    return [
        _alert(
            "ObservationsStopped",
            "warning",
            # Only where the series is as old as that: a model that has just moved here has not stopped.
            f"{rise(observations, at.stopped_after)} == 0\n"
            f"and last_over_time({observations}[5m] offset {at.stopped_after})\n"
            f"unless on (model_id) {_OF_TEMPLATE}",
            "{{ $labels.model_id }} gets no observations",
            f"None in {at.stopped_after}, after {ask('model_observations_total', 'model_id')}.",
            wait="1m",
            dashboard=MODEL_DASHBOARD,
        ),
        _alert(
            "ModelGone",
            "warning",
            # Of a partition that nobody owns there is no series, and so no other alert.
            f"last_over_time({observations}[{at.gone_within}])\nunless {observations}\n"
            f"unless on (model_id) {_OF_TEMPLATE}",
            "{{ $labels.model_id }} has no series any more",
            f"It had within {at.gone_within}, with {{{{ $value | humanize }}}} observations. Nobody owns its "
            "partition, its state is still being read, or its worker has more models than metrics.max_models.",
            wait="5m",
            keep=None,
            dashboard=MODEL_DASHBOARD,
        ),
        _alert(
            "StateTooLarge",
            "warning",
            f"{recorded('model_state_bytes')} > {number(at.state_bytes)}",
            "The state of {{ $labels.model_id }} is large",
            f"It is {{{{ $value | humanize }}}}B, above {number(at.state_bytes / 1e6)} MB: checkpoints and restarts "
            "take long.",
            wait="15m",
            dashboard=MODEL_DASHBOARD,
        ),
        _alert(
            "BudgetExhausted",
            "warning",
            f"{recorded('explain_every_observations')} >= {number(at.explain_every)}\n"
            f"and {recorded('explain_budget_ratio')}",
            "{{ $labels.model_id }} is explained too seldom to keep within its budget",
            f"One in {{{{ $value }}}} observations is explained, {number(at.explain_every)} or more; explaining took "
            f"{ask('explain_share_ratio', 'model_id', form='humanizePercentage')} of the time, and the budget is "
            f"{ask('explain_budget_ratio', 'model_id', form='humanizePercentage')}.",
            wait="10m",
            dashboard=MODEL_DASHBOARD,
        ),
        _alert(
            "VersionRefused",
            "warning",
            f"{rise(_refused(), at.change_window)} > 0",
            "A new version of {{ $labels.model_id }} cannot take over",
            "It was deployed and could not be loaded or explained when it was due: the last one goes on.",
            keep="2m",
            dashboard=MODEL_DASHBOARD,
        ),
    ]


def _refused() -> str:
    return f'{recorded("model_versions_total")}{{outcome="refused"}}'


def _alert(
    name: str,
    severity: Severity,
    expr: str,
    summary: str,
    description: str,
    *,
    wait: str = "0s",
    keep: str | None = "5m",
    dashboard: str = "attributary-operations",
) -> Alert:
    return Alert(name, "operations", severity, expr, summary, description, wait, keep, dashboard)
