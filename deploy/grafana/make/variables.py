"""Makes the variables and annotations that several dashboards share."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as builders

from .board import Annotation, variable
from .queries import latest, series


def job() -> builders.QueryVariable:
    """Return the variable for the scrape jobs of workers: one Prometheus may hold several installations."""
    return variable("job", "Job", "label_values(attributary_worker_step_seconds, job)", multi=True)


def model(*, multi: bool = False) -> builders.QueryVariable:
    """Return the variable for model ids."""
    query = f"label_values({series('model_info')}, model_id)"
    return variable("model_id", "Model", query, multi=multi, all_value=".+" if multi else "")


def explainer(model_id: str, *, multi: bool = False) -> builders.QueryVariable:
    """Return the variable for the explainers of the chosen models."""
    query = f"label_values({series('explainer_observations', model_id=model_id)}, explainer)"
    return variable("explainer", "Explainer", query, multi=multi, all_value=".+" if multi else "")


def worker(model_id: str) -> builders.QueryVariable:
    """Return the variable for the address of the worker that has the model now, as Prometheus scrapes it."""
    query = f"query_result(topk(1, {series('model_info', model_id=model_id)}))"
    return variable("worker", "Worker", query, hidden=True, regex='/instance="([^"]+)"/')


def loss(model_id: str) -> list[builders.QueryVariable]:
    """Return the variables for name, unit and largest value of the model's loss."""
    of = series("model_info", model_id=model_id)
    named = {"loss": "Loss", "loss_unit": "Unit of the loss", "loss_largest": "Largest value of the loss"}
    return [variable(name, label, f"label_values({of}, {name})", hidden=True) for name, label in named.items()]


def _version(model_id: str) -> str:
    # One per model, also while two workers show two versions of it: a join takes no more.
    return f"topk by (model_id) (1, {latest('model_info', model_id=model_id)})"


def incidents(model_id: str) -> Annotation:
    """Return a mark from where an incident of the model was told to where it was over."""
    return Annotation(
        "Incidents",
        latest("incident_open", model_id=model_id),
        colour="red",
        title="{{model_id}}: {{what}}",
        text="{{severity}}. What happened: attributary incidents {{model_id}}",
        tags="model_id,severity",
    )


def deployments(model_id: str) -> Annotation:
    """Return a mark where a new version has taken over."""
    taken = {"model_id": model_id, "outcome": "!refused"}
    after = f"sum by (model_id) ({latest('model_versions_total', **taken)})"
    before = f"sum by (model_id) ({latest('model_versions_total', ' offset $__interval', **taken)})"
    version = _version(model_id)
    return Annotation(
        "New versions",
        f"({after} - {before} > 0) * on (model_id) group_left (version) {version}",
        colour="blue",
        title="{{model_id}}: version {{version}}",
        text="a new version has taken over",
        tags="model_id,version",
    )
