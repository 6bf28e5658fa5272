"""Defines the alerts about the operation of the workers."""

from __future__ import annotations

import json

from .alerts import MODEL_DASHBOARD, Alert, Severity, ask, ask_rise, number, percent
from .options import RuleOptions
from .recorded import recorded, rise

_WHERE = "{{ $labels.topic }}[{{ $labels.partition }}]"
_WORKER = "{{ $labels.instance }}"

_OF_TEMPLATE = "last_over_time(attributary_model_template[1d])"
"""The models of templates: they come and go as their observations do. A day, for a series goes before the alert."""


def operations_alerts(options: RuleOptions) -> list[Alert]:
    """Return the alerts of the area `operations`."""
    return [*_workers(options), *_records(options), *_models(options)]


def _workers(options: RuleOptions) -> list[Alert]:
    workers = ", ".join(options.worker_labels)
    return [
        _alert(
            "WorkerDown",
            ("critical", "warning"),
            f"label_replace(\n"
            f"  up{{job=~{json.dumps(options.job, ensure_ascii=False)}}} == 0,\n"
            f'  "severity", "warning", "", ""\n'
            f")\n"
            f"or\n"
            f'label_replace(absent(attributary_worker_step_seconds), "severity", "critical", "", "")',
            f"{{{{ if $labels.instance }}}}Worker {_WORKER} does not answer{{{{ else }}}}No worker answers"
            "{{ end }}",
            "{{ if $labels.instance }}Its /metrics cannot be scraped. Other workers of its group take its partitions "
            "over, or its supervisor starts it again.{{ else }}No worker of Attributary was scraped: nothing is "
            "explained, and no other alert can tell.{{ end }}",
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
            "attributary_broker_up == 0\nor\nattributary_write_unacknowledged_seconds > 30",
            f"{{{{ if $value }}}}Brokers do not acknowledge what worker {_WORKER} writes{{{{ else }}}}"
            f"No broker answers worker {_WORKER}{{{{ end }}}}",
            "It waits and goes on by itself; what it has handled and not stored stays. {{ if $value }}Brokers answer, "
            "and the oldest write has waited for {{ $value | humanizeDuration }}: probably a partition has no leader, "
            "or fewer replicas in sync than min.insync.replicas.{{ else }}The last answer was "
            '{{ with printf "time() - attributary_broker_last_answer_timestamp_seconds{instance=%q}" '
            "$labels.instance | query }}{{ . | first | value | humanizeDuration }} ago"
            "{{ else }}before it started{{ end }}.{{ end }}",
            wait="1m",
            keep=None,
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
    letters, window = recorded("dead_letters_total"), at.dead_letters_window
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
            "\nor\n".join(
                f"{lag} >= {number(at.lag_records)}\nand deriv({lag}[{at.lag_window}]) > 0"
                for lag in (recorded("consumer_lag_records"), recorded("source_lag_records"))
            ),
            "{{ with $labels.source }}The mapper of {{ . }} does{{ else }}The workers do{{ end }} not keep up with "
            f"{_WHERE}",
            f"{{{{ $value | humanize }}}} records wait, {number(at.lag_records)} or more, and they became more over "
            f"{at.lag_window}.",
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
            # The first only where the series is as old as that: a model that has just moved here has not stopped. The
            # second since there is no series, and so no other alert, of a partition that nobody owns.
            f"(\n"
            f"    {rise(observations, at.stopped_after)} == 0\n"
            f"  and\n"
            f"    last_over_time({observations}[5m] offset {at.stopped_after})\n"
            f"  or\n"
            f"    last_over_time({observations}[{at.gone_within}])\n"
            f"  unless\n"
            f"    {observations}\n"
            f")\n"
            f"unless on (model_id) {_OF_TEMPLATE}",
            "{{ $labels.model_id }} gets no observations",
            "{{ if $value }}"
            f"It has no series any more, and had within {at.gone_within}, with {{{{ $value | humanize }}}} "
            "observations. Nobody owns its partition, its state is still being read, or its worker has more models "
            "than metrics.max_models.{{ else }}"
            f"None in {at.stopped_after}, after {ask('model_observations_total', 'model_id')}.{{{{ end }}}}",
            wait="5m",
            keep=None,
            dashboard=MODEL_DASHBOARD,
        ),
        _alert(
            "VersionStuck",
            "warning",
            f"{rise(_refused(), at.refused_within)} > 0\n"
            f"or\n"
            f"attributary_mlflow_version_missing == 1 and attributary_mlflow_version_missing offset 10m == 1\n"
            f"or\n"
            f"attributary_mlflow_up == 0 and max_over_time(attributary_mlflow_up[30m]) == 0 "
            f"and attributary_mlflow_up offset 30m == 0",
            "{{ with $labels.model_id }}{{ . }} does not get its version{{ else }}"
            "MLflow's registry does not answer{{ end }}",
            "{{ if $labels.outcome }}A new version was deployed and could not be loaded or explained when it was due"
            "{{ else if $labels.model_id }}MLflow's registry has not the alias, the version or the registered model "
            "that is configured{{ else }}"
            f"Worker {_WORKER} has had no answer for half an hour, so that no moved alias is seen{{{{ end }}}}. "
            "What has a version goes on with that; the worker's log says more.",
            keep="2m",
        ),
    ]


def _refused() -> str:
    return f'{recorded("model_versions_total")}{{outcome="refused"}}'


def _alert(
    name: str,
    severity: Severity | tuple[Severity, ...],
    expr: str,
    summary: str,
    description: str,
    *,
    wait: str = "0s",
    keep: str | None = "5m",
    dashboard: str = "attributary-operations",
) -> Alert:
    return Alert(name, "operations", severity, expr, summary, description, wait, keep, dashboard)
