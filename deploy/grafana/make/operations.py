"""Builds the dashboard of the workers: whether they handle records, store state, and refuse anything."""

from __future__ import annotations

from . import variables
from .board import OPERATIONS, Board, variable
from .panels import GREEN, RED, YELLOW, Query, gauges, graph, note, number
from .queries import dead_letters, happened, latest, of_process, per_second, rate, series, total

WORKER = {"instance": "~$instance"}
QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))

NO_MONITOR = "no service has a monitor"

HOW_TO_READ = """\
Top to bottom: are the workers up, do they keep pace, do they store what they have, do they refuse anything?

- **Lag** that grows while *busy* is near 100 %: too much work. Add workers, up to the number of partitions, or set
  a budget for explaining.
- **Lag** that grows while *busy* is low: look at *present step* and the log.
- **Lag** that is absent: brokers are away; see *silence of the brokers*.
- **Checkpoints** are written while observations come. What is not yet stored, a crash repeats.
- **Dead letters** each say why in their headers.

Series of partitions and models move with their partition; those of a worker stay with it.
"""


def operations() -> Board:
    """Return the dashboard `attributary-operations`."""
    board = Board(OPERATIONS, "Attributary / Operations", "Workers: lag, checkpoints, dead letters, resources.")
    board.variables(
        variables.job(),
        variable("instance", "Worker", f"label_values({series('worker_step_seconds')}, instance)", multi=True),
    )
    lag = latest("consumer_lag_records")
    pending = latest("checkpoint_pending_seconds")

    age = f"time() - max by (instance) ({series('last_checkpoint_timestamp_seconds', **WORKER)})"
    board.line(
        number(
            "Workers up",
            "Scrape targets that answered.",
            Query(f"count({series('worker_step_seconds', **WORKER)}) or sum({of_process('up')})"),
            empty="no target",
            steps=((None, RED), (1, GREEN)),
            size=(3, 4),
        ),
        number(
            "Workers down",
            "Scrape targets that did not answer.",
            Query(f"count({of_process('up')} == 0) or vector(0)"),
            steps=((None, GREEN), (1, RED)),
            size=(3, 4),
        ),
        number(
            "Lag",
            "Records that are not yet handled, over all partitions.",
            Query(f"sum({lag})"),
            empty="no lag known yet",
            trend=True,
            size=(3, 4),
            decimals=0,
        ),
        number(
            "Not yet stored",
            "Age of the oldest record that is handled and not yet stored, over all partitions: what a crash repeats.",
            Query(f"max({pending})"),
            unit="s",
            empty="none yet",
            decimals=0,
            steps=((None, GREEN), (120, YELLOW), (600, RED)),
            size=(3, 4),
        ),
        number(
            "Dead letters",
            "Records of the time range that could not be used.",
            Query(f"sum({happened('dead_letters_total')}) or vector(0)"),
            decimals=0,
            steps=((None, GREEN), (1, RED)),
            size=(3, 4),
        ),
        number(
            "Models refused",
            "Their stored state is damaged: their observations become dead letters.",
            Query(f"sum({total('models_refused')}) or vector(0)"),
            steps=((None, GREEN), (1, RED)),
            size=(3, 4),
        ),
        number(
            "Models without series",
            "Left out of the metrics by their limits, `metrics.max_models` and `metrics.max_series`.",
            Query(f"sum({total('series_dropped_models')}) or vector(0)"),
            steps=((None, GREEN), (1, YELLOW)),
            size=(3, 4),
        ),
        number(
            "Stalls",
            "Steps and pauses beyond `watchdog.warn_after_s` in the time range; the log says where.",
            Query(f"sum(increase({series('worker_stalls_total', '[$__range]', **WORKER)})) or vector(0)"),
            decimals=0,
            steps=((None, GREEN), (1, RED)),
            size=(3, 4),
        ),
    )
    board.heading("Records")
    board.line(
        graph("Lag by partition", "By partition.", Query(lag, "{{topic}} {{partition}}"), least=0, size=(8, 8)),
        graph(
            "Records read",
            "By partition, and offsets that had no record: retention and compaction, or what transactions take. And "
            "the transactions of the workers, where each event is published exactly once.",
            Query(per_second("records_consumed_total"), "{{topic}} {{partition}}"),
            Query(f"sum({per_second('records_unavailable_total')})", "offsets without a record"),
            Query(f"sum({per_second('transaction_offsets_total')})", "markers and aborted records"),
            Query(f"sum by (outcome) ({per_second('origin_records_total')})", "sent again: {{outcome}}"),
            Query(rate("transactions_total"), "transactions {{outcome}}"),
            unit="ops",
            least=0,
            size=(8, 8),
        ),
        graph(
            "Dead letters by reason",
            "In each step, by topic and reason; each says in its headers why it is there.",
            Query(dead_letters(), "{{reason}} {{topic}}"),
            bars=True,
            least=0,
            size=(8, 8),
        ),
    )
    board.heading("Sources")
    board.line(
        graph(
            "Records of sources",
            "What became of the records that are mapped: mapped, passed over, or dead letters.",
            Query(rate("source_records_total"), "{{source}} {{outcome}}"),
            unit="ops",
            least=0,
            size=(6, 8),
            empty="no source is mapped here",
        ),
        graph(
            "Not mapped yet",
            "Offsets of the sources' topics, by source.",
            Query(f"sum by (source) ({latest('source_lag_records')})", "{{source}}"),
            least=0,
            size=(6, 8),
            empty="no source is mapped here",
        ),
        graph(
            "Behind in time",
            "Age of the record mapped last by its own time, 0 where all is mapped; and sources that wait for a schema.",
            Query(latest("source_time_lag_seconds"), "{{source}}"),
            Query(f"{latest('source_waiting_registry')} > 0", "{{source}} waits for a schema"),
            unit="s",
            least=0,
            size=(6, 8),
            empty="no source is mapped here",
        ),
        graph(
            "Mapped records taken",
            "By what became of them: repeats were taken before a mapper was killed, those that are early come again.",
            Query(f"sum by (outcome) ({per_second('origin_records_total')})", "{{outcome}}"),
            unit="ops",
            least=0,
            size=(6, 8),
        ),
    )
    board.heading("Served models")
    board.line(
        graph(
            "Requests to endpoints",
            "By model and by what became of them: answered, sent again, failed for the last time, or refused.",
            Query(rate("endpoint_requests_total"), "{{model_id}} {{outcome}}"),
            unit="ops",
            least=0,
            size=(8, 8),
            empty="no model is served elsewhere",
        ),
        graph(
            "Duration of a request",
            "Quantiles by model, as exactly as the buckets are fine.",
            *(
                Query(
                    f"histogram_quantile({part}, {rate('endpoint_duration_seconds_bucket')})",
                    f"{{{{model_id}}}} {name}",
                )
                for name, part in QUANTILES
            ),
            unit="s",
            least=0,
            size=(8, 8),
            empty="no model is served elsewhere",
        ),
        graph(
            "Observations wait for endpoints",
            "For how long observations of a model have waited for answers, some tenths of a second are healthy; and "
            "the models whose endpoint does not answer.",
            Query(latest("endpoint_waiting_seconds"), "{{model_id}}"),
            Query(f"{latest('endpoint_breaker_open')} > 0", "does not answer: {{model_id}}"),
            unit="s",
            least=0,
            size=(8, 8),
            empty="no model is served elsewhere",
        ),
    )
    board.heading("Steps of the workers")
    withheld = f"max by (instance) ({series('write_unacknowledged_seconds', **WORKER)})"
    silent = f"time() - max by (instance) ({series('broker_last_answer_timestamp_seconds', **WORKER)})"
    durations = series("stage_duration_seconds_sum", "[$__rate_interval]", **WORKER)
    spent = f"sum by (instance, stage) (rate({durations}))"
    board.line(
        graph(
            "Duration of an observation",
            "Quantiles over the chosen workers, as exactly as the buckets are fine.",
            *_quantiles("observation", "$__rate_interval"),
            unit="s",
            least=0,
            size=(6, 8),
            empty="no observation in this time range",
        ),
        graph(
            "Duration of a checkpoint",
            "Quantiles of the last five minutes over the chosen workers: checkpoints are rare.",
            *_quantiles("checkpoint", "5m"),
            unit="s",
            least=0,
            size=(6, 8),
            empty="no checkpoint in this time range",
        ),
        graph(
            "Busy",
            "Share of the time in observations and in checkpoints, by worker. One worker is at 100 % at most.",
            Query(spent, "{{instance}} {{stage}}"),
            unit="percentunit",
            least=0,
            stacked=True,
            size=(4, 8),
        ),
        graph(
            "Present step",
            "How long each worker's present step has lasted, 0 between steps; and from when on it is a stall.",
            Query(f"max by (instance) ({series('worker_step_seconds', **WORKER)})", "{{instance}}"),
            Query(f"min({series('worker_step_limit_seconds', **WORKER)})", "a stall from here on"),
            unit="s",
            least=0,
            size=(4, 8),
            dashed="a stall from here on",
        ),
        graph(
            "Silence of the brokers",
            "Time since any broker has answered the worker, some seconds are healthy; where they are away; and for how "
            "long they have not acknowledged the oldest write.",
            Query(silent, "{{instance}}"),
            Query(
                f"({silent}) and max by (instance) ({series('broker_up', **WORKER)}) == 0",
                "away: {{instance}}",
            ),
            Query(withheld, "not acknowledged: {{instance}}"),
            unit="s",
            least=0,
            size=(4, 8),
            empty="no broker has answered yet",
        ),
    )
    board.heading("State")
    board.line(
        graph(
            "Checkpoints",
            "Age of the oldest record that is handled and not yet stored, by partition; of each worker's last "
            "checkpoint, which grows while nothing comes; and how long an open transaction has held up a partition.",
            Query(pending, "not stored: {{topic}} {{partition}}"),
            Query(f"{latest('transaction_open_seconds')} > 0", "open transaction: {{topic}} {{partition}}"),
            Query(age, "last checkpoint: {{instance}}"),
            unit="s",
            least=0,
            size=(8, 8),
            empty="no checkpoint yet",
        ),
        gauges(
            "Largest states",
            "Stored size by model.",
            Query(f"topk(10, {latest('model_state_bytes')})", "{{model_id}}"),
            unit="bytes",
            size=(8, 8),
            empty="nothing is stored yet",
        ),
        graph(
            "Refused and foreign",
            "Models whose stored state is damaged, models that are not restored yet or only when they are asked for, "
            "models without series, records "
            "in the state's changelog that no worker has written, and how often models went back to their last good "
            "state.",
            Query(f"sum({total('models_refused')})", "models refused"),
            Query(f"sum({total('models_restoring')})", "models to be restored"),
            Query(f"sum({total('models_resting')})", "models that rest"),
            Query(f"sum({total('series_dropped_models')})", "models without series"),
            Query(f"sum({total('state_records_foreign_total')})", "foreign records"),
            Query(f"sum({latest('model_recoveries_total')})", "recoveries"),
            least=0,
            at_least_up_to=1,
            size=(8, 8),
        ),
    )
    board.line(
        graph(
            "Models of templates",
            "By template: models that there are, those in memory, and those with series of their own, of all workers.",
            Query(total("models_known"), "{{template}}: known"),
            Query(total("models_loaded"), "{{template}}: in memory"),
            Query(f"count by (template) ({latest('model_template')})", "{{template}}: with series"),
            least=0,
            size=(8, 8),
            empty="no template is configured",
        ),
        graph(
            "Loaded and left",
            "By template: stored models that were loaded for a record, and models that left the memory because they "
            "were idle. Many of both at once: `idle` is shorter than the pauses of the models.",
            Query(rate("model_loads_total", **WORKER), "{{template}}: loaded"),
            Query(rate("model_evictions_total", **WORKER), "{{template}}: left"),
            unit="ops",
            least=0,
            size=(8, 8),
            empty="no template is configured",
        ),
        graph(
            "Observations of templates",
            "By template: observations of all its models, of those without series, too.",
            Query(rate("template_observations_total", **WORKER), "{{template}}"),
            unit="ops",
            least=0,
            size=(8, 8),
            empty="no template is configured",
        ),
    )
    board.line(
        graph(
            "MLflow's registry",
            "Whether it answers the worker that asks it, how many models it lacks a version of, how many have a "
            "version that is tried again, and how many have observations that wait for their first version.",
            Query(f"min({series('mlflow_up')})", "it answers"),
            Query(f"sum({latest('mlflow_version_missing')})", "models whose alias is missing"),
            Query(f"count({latest('model_version_retried')})", "models whose version is tried again"),
            Query(f"count({latest('model_version_awaited')})", "models that wait for a first version"),
            least=0,
            at_least_up_to=1,
            size=(8, 8),
            empty="no model is of MLflow's registry",
        ),
        graph(
            "Last answer of the registry",
            "How long ago MLflow's registry has answered last: about the shortest `poll` of an alias.",
            Query(
                f"time() - max({series('mlflow_last_answer_timestamp_seconds')})",
                "last answer",
            ),
            unit="s",
            least=0,
            size=(8, 8),
            empty="no model is of MLflow's registry",
        ),
        graph(
            "Versions deployed by alias",
            "By model: versions that were deployed because an alias named them.",
            Query(latest("mlflow_deployments_total"), "{{model_id}}"),
            least=0,
            at_least_up_to=1,
            size=(8, 8),
            empty="no model is of MLflow's registry",
        ),
    )
    board.heading("Services that hold their model")
    board.line(
        graph(
            "Waiting to be explained",
            "Observations that a monitor in a service has not taken yet, off the path of requests. Beyond the limit "
            "none is explained until there are fewer.",
            Query(latest("monitor_waiting_observations"), "{{model_id}}"),
            Query(latest("monitor_waiting_limit"), "limit: {{model_id}}"),
            least=0,
            size=(8, 8),
            empty=NO_MONITOR,
        ),
        graph(
            "Failures, and what was not explained",
            "Observations and predictions of no use, by reason, and observations that too many waited for.",
            Query(latest("monitor_failures_total"), "{{model_id}}: {{reason}}"),
            Query(latest("monitor_not_explained_total"), "not explained: {{model_id}}"),
            least=0,
            size=(8, 8),
            empty=NO_MONITOR,
        ),
        graph(
            "Events",
            "By what became of them: published, failed where the publisher raised, dropped where too many waited.",
            Query(latest("monitor_events_total"), "{{model_id}}: {{outcome}}"),
            least=0,
            size=(8, 8),
            empty=NO_MONITOR,
        ),
    )
    board.heading("Processes")
    board.line(
        graph(
            "Memory",
            "Resident set.",
            Query(of_process("process_resident_memory_bytes"), "{{instance}}"),
            unit="bytes",
            least=0,
            size=(5, 8),
        ),
        graph(
            "CPU",
            "Processors in use.",
            Query(f"rate({of_process('process_cpu_seconds_total', '[$__rate_interval]')})", "{{instance}}"),
            least=0,
            size=(5, 8),
        ),
        graph(
            "Up",
            "1 where the scrape was answered, and how often the process was started again within the time range.",
            Query(of_process("up"), "{{instance}}"),
            Query(f"changes({of_process('process_start_time_seconds', '[$__range]')})", "restarts: {{instance}}"),
            least=0,
            size=(5, 8),
        ),
        note("How to read this", HOW_TO_READ, size=(9, 8)),
    )  # fmt: skip
    return board


def _quantiles(stage: str, over: str) -> list[Query]:
    counted = rate("stage_duration_seconds_bucket", over, stage=stage, **WORKER)
    return [Query(f"histogram_quantile({part}, {counted})", name) for name, part in QUANTILES]
