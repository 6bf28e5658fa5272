"""Metrics of MLflow's registry, whose aliases models follow."""

from __future__ import annotations

from attributary_explainers.monitor.families import Add

from ..worker.view import WorkerView

_MODEL = ("model_id",)

REGISTRY_METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "mlflow_up": (
        "1 while MLflow's registry answers this worker, 0 while it does not; absent where another worker asks it",
        (),
    ),
    "mlflow_last_answer_timestamp_seconds": ("Time of its last answer to this worker", ()),
    "mlflow_version_missing": ("1 while it has no such model, alias or version as the configuration names", _MODEL),
    "mlflow_deployments_total": ("Versions that this worker has deployed because an alias named them", _MODEL),
    "model_version_retried": (
        "1 while a version of the model cannot be had or built, for a cause that may pass, and is tried again",
        _MODEL,
    ),
    "model_version_awaited": ("1 while observations wait for the model's first version", _MODEL),
}
"""Part of the catalogue: name without the prefix to help text and labels."""


def add_registry(view: WorkerView, add: Add) -> None:
    """Add the series of the registry, as this process knows it."""
    board = view.registry
    if board.is_up is not None:
        add("mlflow_up", (), float(board.is_up))
        add("mlflow_last_answer_timestamp_seconds", (), board.answered_at)
    for model_id in board.missing.copy():
        add("mlflow_version_missing", (model_id,), 1.0)
    for model_id in {model_id for _, model_id in board.retried.copy()}:
        add("model_version_retried", (model_id,), 1.0)
    for model_id, n in board.n_sent.copy().items():
        add("mlflow_deployments_total", (model_id,), float(n))
    for model_id in {one for owned in view.partitions.values() for one in owned.partition.models.awaited.copy()}:
        add("model_version_awaited", (model_id,), 1.0)
